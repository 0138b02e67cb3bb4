"""A table's report: one log, one read of its footers, one plan of a VACUUM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone

from mirror_assets.direct_lake.advice import Advice, advice
from mirror_assets.direct_lake.column_questions import Answer, candidate, float_columns, loading
from mirror_assets.direct_lake.footers.parquet_columns import ColumnNames
from mirror_assets.direct_lake.framing import FramingEffect, FramingPoint, framing_effect, framing_series
from mirror_assets.direct_lake.guardrails.capacity_fit import Guardrails
from mirror_assets.direct_lake.guardrails.skus import SKUS, Sku
from mirror_assets.direct_lake.maintenance.maintenance_plan import maintenance_plan
from mirror_assets.direct_lake.maintenance.plan_values import MaintenanceInput, MaintenancePlan, SafeRetention
from mirror_assets.direct_lake.maintenance.writer_settings import WriterSetting, settings_for_writers
from mirror_assets.direct_lake.row_questions import partition_of, partitions_touched, rows_kept
from mirror_assets.direct_lake.table_layout import LayoutReport
from mirror_assets.direct_lake.table_snapshot import TableSnapshot
from mirror_assets.direct_lake.type_rules import TypeIssue
from mirror_assets.direct_lake.vacuum.model_frames import Frame
from mirror_assets.direct_lake.vacuum.requirements import RetentionConsumers
from mirror_assets.direct_lake.vacuum.vacuum_plan import VacuumPlan, vacuum_of
from mirror_assets.source.table_log import LoggedCommit, TableLog

# The smallest capacity: what fits into it fits into all.
_SMALLEST = SKUS[0]
# The newest commits tell how a table is loaded; a report with all of them would be read by nobody.
_COMMITS = 10


@dataclass(frozen=True)
class Keeping:
    """The question for the rows of the newest months, by a column of dates."""

    column: str
    months: int


@dataclass(frozen=True)
class Questions:
    """The questions of the seed to answer; empty ones are left out.

    `columns` are those that a model uses, `one_side` those on the one-side of a relationship. `partition_by` is a
    column that the table might be partitioned by, compared with the limits of `sku`.
    """

    columns: tuple[str, ...] = ()
    one_side: tuple[str, ...] = ()
    partition_by: str | None = None
    keeping: Keeping | None = None
    sku: Sku = _SMALLEST


@dataclass(frozen=True)
class ReportOptions:
    """What to report on; `maintenance` leaves out what the report finds itself (dropped columns, retention)."""

    consumers: RetentionConsumers = field(default_factory=RetentionConsumers)
    questions: Questions = field(default_factory=Questions)
    maintenance: MaintenanceInput = field(default_factory=MaintenanceInput)


@dataclass(frozen=True)
class DirectLakeReport:
    """A table at its newest version, committed at `timestamp_ms` (since 1970), as read at `now` (in seconds).

    `advice` is what its layout calls for, what weighs most first; `types` what Direct Lake can't load. `framing` is
    what a model loads that is framed after each of the last days with a commit, `reframing` what models with the
    frames of the options load when they are framed now. `writers` are settings for larger files and row groups, where
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


def table_report(table: TableSnapshot, options: ReportOptions | None = None) -> DirectLakeReport:
    """Report on the table.

    Raises SettingError for what the options name wrongly (a frame, a column, a table of Fabric) and for a cache that
    can't be used, StopError for a data file that is gone or no Parquet, and what the log raises.
    """
    options = options or ReportOptions()
    log, layout, history = table.log, table.layout, table.history
    advised, vacuum = advice(layout), vacuum_of(log, table.now, options.consumers)
    maintenance = _maintenance(table, options, vacuum)
    return DirectLakeReport(
        name=table.name,
        uri=log.uri,
        version=log.snapshot().version,
        timestamp_ms=log.snapshot().timestamp_ms,
        now=table.now,
        guardrails=table.guardrails,
        layout=layout,
        advice=advised,
        types=table.types(options.questions.one_side),
        vacuum=vacuum,
        answers=tuple(_answers(table, options.questions)),
        framing=framing_series(history, history.daily_versions()),
        reframing=tuple(_reframing(log, options.consumers.frames)),
        maintenance=maintenance,
        writers=settings_for_writers(maintenance.table, advised, options.maintenance, layout.writers),
    )


def _maintenance(table: TableSnapshot, options: ReportOptions, vacuum: VacuumPlan) -> MaintenancePlan:
    """Plan maintenance; its VACUUM goes by the table's properties, also where `vacuum` was planned with RETAIN."""
    plain = replace(options.consumers, retain_hours=None)
    guard = vacuum if plain == options.consumers else vacuum_of(table.log, table.now, plain)
    wanted = replace(options.maintenance, dropped=table.dropped_bytes, retention=SafeRetention.of(guard))
    return maintenance_plan(table.log.snapshot(), wanted)


def _reframing(log: TableLog, frames: Iterable[Frame]) -> Iterator[FramingEffect]:
    """The effect of framing now, for each frame that the log can still reconstruct."""
    framed = {frame.version for frame in frames}.intersection(log.versions())
    for snapshot in log.snapshots(framed):
        yield framing_effect(snapshot, log.snapshot())


def _answers(table: TableSnapshot, questions: Questions) -> Iterator[Answer]:
    """The answers to the questions, then two that are always given: floats, and partitions touched."""
    snapshot, layout = table.log.snapshot(), table.layout
    names = ColumnNames.of(snapshot.metadata)
    if questions.columns:
        yield from loading(layout.columns, names, questions.columns).answers()
    if questions.partition_by is not None:
        yield candidate(layout, names, questions.partition_by).answer(questions.sku)
    if keeping := questions.keeping:
        yield rows_kept(snapshot, table.footers, keeping.column, keeping.months, _day(table.now)).answer(keeping.months)
    yield from (column.answer() for column in float_columns(layout))
    if layout.partitions.columns:
        touched = partitions_touched(table.log, _newest_commits(table.log))
        live = {partition_of(dict(one.values)) for one in layout.partitions.each}
        yield from (one.answer(live) for one in touched if one.partitions or one.unknown)


def _newest_commits(log: TableLog) -> tuple[LoggedCommit, ...]:
    """The newest commits, as far back as none is missing."""
    logged, first = set(log.logged()), log.newest() + 1
    while first - 1 in logged and log.newest() - first + 1 < _COMMITS:
        first -= 1
    return log.commits(first, log.newest())


def _day(now: float) -> date:
    return datetime.fromtimestamp(now, timezone.utc).date()
