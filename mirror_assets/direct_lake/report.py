"""A table's report: its log is listed once, each footer is read once, and VACUUM is planned once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from mirror_assets.direct_lake.columns import (
    ColumnAnswer,
    ColumnNames,
    dropped_bytes,
    float_answers,
    loaded_bytes,
)
from mirror_assets.direct_lake.footer_reader import FooterReader
from mirror_assets.direct_lake.footers import Footers
from mirror_assets.direct_lake.framing import (
    FramingEffect,
    FramingPoint,
    LogSpan,
    framing_effect,
    framing_series,
    recent_span,
)
from mirror_assets.direct_lake.guardrails import CapacityFit, Guardrails, growth, measure, predicted_mirror
from mirror_assets.direct_lake.layout import Advice, LayoutReport, advice, layout_report
from mirror_assets.direct_lake.maintenance_plan import (
    MaintenanceInput,
    MaintenancePlan,
    maintenance_plan,
)
from mirror_assets.direct_lake.type_rules import TypeIssue, type_issues
from mirror_assets.direct_lake.vacuum import RetentionConsumers, VacuumPlan, plan_vacuum
from mirror_assets.source.log import DeltaLog

_DAY_MS = 86_400_000


@dataclass(frozen=True)
class InspectedTable:
    """A table's newest version at `now` (seconds since 1970). Each property is computed when it is first used.

    Growth and framing are those of the last `recent_days`. All properties raise what the log and `reader` raise.
    """

    name: str
    log: DeltaLog
    reader: FooterReader
    now: float
    recent_days: float = 7.0

    @cached_property
    def footers(self) -> Footers:
        """The footers of all live files."""
        return self.reader.read(self.log.snapshot().files)

    @cached_property
    def layout(self) -> LayoutReport:
        """The layout of the table's files."""
        return layout_report(self.log.snapshot(), self.footers)

    @cached_property
    def span(self) -> LogSpan:
        """The versions of the last days."""
        return recent_span(self.log, self._since_ms)

    @cached_property
    def guardrails(self) -> Guardrails:
        """The table, and its mirror as predicted, against every capacity."""
        a_day = growth(self.span, self._since_ms, round(self.now * 1000))
        figures = measure(self.name, self.log.snapshot(), self.footers, a_day)
        return Guardrails(CapacityFit.of(figures), CapacityFit.of(predicted_mirror(figures)))

    @cached_property
    def types(self) -> tuple[TypeIssue, ...]:
        """The columns that Direct Lake can't load, or perhaps can't."""
        metadata = self.log.snapshot().metadata
        parquet = {column.parquet.path: column.parquet for column in self.layout.columns}
        return type_issues(self.log.uri, ColumnNames.of(metadata), metadata.partition_columns, parquet)

    @property
    def _since_ms(self) -> int:
        return round(self.now * 1000) - round(self.recent_days * _DAY_MS)


@dataclass(frozen=True)
class ReportOptions:
    """What to report on. `columns` are those that a model uses.

    `maintenance` omits what the report finds out itself: dropped columns and VACUUM's plan.
    """

    consumers: RetentionConsumers = field(default_factory=RetentionConsumers)
    columns: tuple[str, ...] = ()
    maintenance: MaintenanceInput = field(default_factory=MaintenanceInput)


@dataclass(frozen=True)
class DirectLakeReport:
    """A table at its newest version, committed at `timestamp_ms` (since 1970), as read at `now` (in seconds).

    `framing` is what a model loads that is framed after each of the last days with a commit. `reframing` is what
    models with the frames of the options load when they are framed now.
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
    answers: tuple[ColumnAnswer, ...]
    framing: tuple[FramingPoint, ...]
    reframing: tuple[FramingEffect, ...]
    maintenance: MaintenancePlan


def table_report(table: InspectedTable, options: ReportOptions | None = None) -> DirectLakeReport:
    """Report on the table.

    Raises SettingError for a frame or column that the table can't have, and for a cache that can't be used, StopError
    for a data file that is missing or no Parquet, and what the log raises.
    """
    options = options or ReportOptions()
    log, layout, consumers = table.log, table.layout, options.consumers
    snapshot, names = log.snapshot(), ColumnNames.of(log.snapshot().metadata)
    vacuum = guard = plan_vacuum(log, table.now, consumers.frames, consumers.mirror, consumers.retain_hours)
    if consumers.retain_hours is not None:  # maintenance runs VACUUM without RETAIN
        guard = plan_vacuum(log, table.now, consumers.frames, consumers.mirror)
    framed = {frame.version for frame in consumers.frames}.intersection(log.versions())
    loaded = loaded_bytes(layout.columns, names, options.columns) if options.columns else ()
    return DirectLakeReport(
        name=table.name,
        uri=log.uri,
        version=snapshot.version,
        timestamp_ms=snapshot.timestamp_ms,
        now=table.now,
        guardrails=table.guardrails,
        layout=layout,
        advice=advice(layout),
        types=table.types,
        vacuum=vacuum,
        answers=(*loaded, *float_answers(layout.columns, layout.writers)),
        framing=framing_series(log, table.span),
        reframing=tuple(framing_effect(before, snapshot) for before in log.snapshots(framed)),
        maintenance=maintenance_plan(
            snapshot,
            replace(
                options.maintenance,
                dropped=dropped_bytes(table.footers, names),
                vacuum=guard,
            ),
        ),
    )
