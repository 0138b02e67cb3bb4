"""What a report is asked, besides the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone

from mirror_assets.direct_lake.advice import Advice, advice
from mirror_assets.direct_lake.column_questions import Answer, candidate, float_columns, loading
from mirror_assets.direct_lake.footers.facts import Footers
from mirror_assets.direct_lake.footers.parquet_columns import ColumnNames
from mirror_assets.direct_lake.framing import FramingEffect, FramingPoint, framing_effect, framing_series
from mirror_assets.direct_lake.guardrails.capacity_fit import Guardrails
from mirror_assets.direct_lake.guardrails.skus import SKUS, Sku
from mirror_assets.direct_lake.maintenance.maintenance_plan import maintenance_plan, safe_retention
from mirror_assets.direct_lake.maintenance.plan_values import MaintenanceInput, MaintenancePlan
from mirror_assets.direct_lake.maintenance.writer_settings import WriterSetting, settings_for_writers
from mirror_assets.direct_lake.row_questions import partition_of, partitions_touched, rows_kept
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.values import LoggedCommit
from mirror_assets.direct_lake.table_layout import LayoutReport
from mirror_assets.direct_lake.table_snapshot import TableSnapshot
from mirror_assets.direct_lake.type_rules import TypeIssue
from mirror_assets.direct_lake.vacuum.model_frames import Frame
from mirror_assets.direct_lake.vacuum.requirements import Mirror
from mirror_assets.direct_lake.vacuum.vacuum_plan import VacuumPlan, plan_vacuum

# The smallest capacity: what fits into it fits into all.
_SMALLEST = SKUS[0]


@dataclass(frozen=True)
class RetentionConsumers:
    """Who still needs older versions of the table, and the retention that VACUUM is to be told, if any, in hours."""

    frames: tuple[Frame, ...] = ()
    mirror: Mirror | None = None
    retain_hours: float | None = None


@dataclass(frozen=True)
class Keeping:
    """The question for the rows of the newest months, by a column of dates."""

    column: str
    months: int


@dataclass(frozen=True)
class Questions:
    """What of the seed's questions is asked; what is left empty is not.

    `columns` are those that a model uses, `one_side` those on the one-side of a relationship. `partition_by` is a
    column that the table might be partitioned by, judged by the limits of `sku`.
    """

    columns: tuple[str, ...] = ()
    one_side: tuple[str, ...] = ()
    partition_by: str | None = None
    keeping: Keeping | None = None
    sku: Sku = _SMALLEST


@dataclass(frozen=True)
class ReportOptions:
    """All that is asked; of `maintenance`, what the report itself finds (dropped columns, retention) is left empty."""

    readers: RetentionConsumers = field(default_factory=RetentionConsumers)
    questions: Questions = field(default_factory=Questions)
    maintenance: MaintenanceInput = field(default_factory=MaintenanceInput)


@dataclass(frozen=True)
class DirectLakeReport:
    """A table at its newest version, committed at `timestamp_ms` (since 1970), as looked at `now` (in seconds).

    `advice` is what its layout calls for, what weighs most first; `types` what Direct Lake can't load. `framing` is
    what a model loads that is framed after each of the last days with a commit, `reframing` what those with the frames
    that were asked about load when they are framed now. `writers` are settings for larger files and row groups, where
    advice calls for them.
    """

    name: str
    uri: str
    version: int
    timestamp_ms: int
    now: float
    guardrails: Guardrails
    layout: LayoutReport
    advice: tuple[Advice, ...]
    types: tuple[TypeIssue, ...]
    vacuum: VacuumPlan
    answers: tuple[Answer, ...]
    framing: tuple[FramingPoint, ...]
    reframing: tuple[FramingEffect, ...]
    maintenance: MaintenancePlan
    writers: tuple[WriterSetting, ...]


def table_report(look: TableSnapshot, asked: ReportOptions | None = None) -> DirectLakeReport:
    """The report.

    Raises FrameRefused, ColumnUnknown, NotADate, SchemaUnreadable, PropertyUnreadable, FabricNameRefused, CacheUnusable
    (SettingError), LiveFileMissing and FooterUnreadable (StopError), and what the log raises.
    """
    asked, log, now = asked or ReportOptions(), look.log, look.now
    snapshot, vacuum = log.snapshot(), vacuum_of(log, now, asked.readers)
    advised, maintenance = advice(look.layout), _maintenance(look, asked, vacuum)
    return DirectLakeReport(
        name=look.name,
        uri=log.uri,
        version=snapshot.version,
        timestamp_ms=snapshot.timestamp_ms,
        now=now,
        guardrails=look.guardrails,
        layout=look.layout,
        advice=advised,
        types=look.types(asked.questions.one_side),
        vacuum=vacuum,
        answers=tuple(answers_of(log, look.footers, look.layout, asked.questions, _day(now))),
        framing=framing_series(look.history, look.history.daily_versions()),
        reframing=tuple(_reframing(log, asked.readers.frames)),
        maintenance=maintenance,
        writers=settings_for_writers(maintenance.table, advised, asked.maintenance, look.layout.writers),
    )


def vacuum_of(log: TableLog, now: float, readers: RetentionConsumers) -> VacuumPlan:
    """The plan of a VACUUM at `now`, for these readers. Raises FrameRefused, PropertyUnreadable."""
    return plan_vacuum(log, now, readers.frames, readers.mirror, readers.retain_hours)


def _reframing(log: TableLog, frames: Iterable[Frame]) -> Iterator[FramingEffect]:
    """Of frames that can still be put together."""
    framed = {frame.version for frame in frames}.intersection(log.versions())
    for snapshot in log.snapshots(framed):
        yield framing_effect(snapshot, log.snapshot())


def _maintenance(look: TableSnapshot, asked: ReportOptions, vacuum: VacuumPlan) -> MaintenancePlan:
    """VACUUM is planned as the table's properties have it, whatever RETAIN `vacuum` was asked about."""
    plain = replace(asked.readers, retain_hours=None)
    guard = vacuum if plain == asked.readers else vacuum_of(look.log, look.now, plain)
    wanted = replace(asked.maintenance, dropped=look.dropped_bytes, retention=safe_retention(guard))
    return maintenance_plan(look.log.snapshot(), wanted)


def _day(now: float) -> date:
    return datetime.fromtimestamp(now, timezone.utc).date()


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
