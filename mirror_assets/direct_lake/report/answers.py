"""The seed's questions about a table, answered as rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.footers.mapping import ColumnNames
from mirror_assets.direct_lake.layout.report import LayoutReport
from mirror_assets.direct_lake.questions.answer import Answer
from mirror_assets.direct_lake.questions.candidate import candidate
from mirror_assets.direct_lake.questions.floats import float_columns
from mirror_assets.direct_lake.questions.keeping import rows_kept
from mirror_assets.direct_lake.questions.loading import loading
from mirror_assets.direct_lake.questions.touched import partition_of, partitions_touched
from mirror_assets.direct_lake.report.asked import Questions
from mirror_assets.source.table_log import LoggedCommit, TableLog

# The newest commits tell how a table is loaded; a report with all of them would be read by nobody.
_COMMITS = 10


def answers_of(
    log: TableLog, footers: Footers, layout: LayoutReport, questions: Questions, today: date
) -> Iterator[Answer]:
    """The answers to what is asked, then those that no one need ask for: floats, and partitions touched.

    Raises ColumnUnknown and NotADate.
    """
    names = ColumnNames.of(log.snapshot().metadata)
    if questions.columns:
        yield from loading(layout.columns, names, questions.columns).answers()
    if questions.partition_by is not None:
        yield candidate(layout, names, questions.partition_by).answer(questions.sku)
    if keeping := questions.keeping:
        yield rows_kept(log.snapshot(), footers, keeping.column, keeping.months, today).answer(keeping.months)
    yield from (column.answer() for column in float_columns(layout))
    if layout.partitions.columns:
        touched = partitions_touched(log, _newest_commits(log))
        live = {partition_of(dict(one.values)) for one in layout.partitions.each}
        yield from (one.answer(live) for one in touched if one.partitions or one.unknown)


def _newest_commits(log: TableLog) -> tuple[LoggedCommit, ...]:
    """The newest commits, as far back as none is missing."""
    logged, first = set(log.logged()), log.newest() + 1
    while first - 1 in logged and log.newest() - first + 1 < _COMMITS:
        first -= 1
    return log.commits(first, log.newest())
