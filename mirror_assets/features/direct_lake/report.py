"""A table's report: its log is listed once, each footer is read once, and VACUUM is planned once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mirror_assets.features.direct_lake.consumers import NO_CONSUMERS, RetentionConsumers
from mirror_assets.features.direct_lake.footers import FooterReader, Footers
from mirror_assets.features.direct_lake.framing import FramingEffect, framing_effect, growth
from mirror_assets.features.direct_lake.guardrails import TableSize, measure
from mirror_assets.features.direct_lake.layout import Advice, LayoutReport, advice, layout_report
from mirror_assets.features.direct_lake.maintenance_plan import MaintenanceStep, rewrite_steps, script, vacuum_steps
from mirror_assets.features.direct_lake.table_columns import ColumnNames, TypeIssue, dropped_bytes, type_issues
from mirror_assets.features.direct_lake.vacuum import VacuumPlan, plan_vacuum
from mirror_assets.source.log import DeltaLog
from mirror_assets.spark_names import table_at

_WEEK_MS = 7 * 86_400_000


@dataclass(frozen=True)
class InspectedTable:
    """A table's newest version at `now` (seconds since 1970). Each property is computed when it is first used.

    Growth is that of the last week. All properties raise what the log and `reader` raise.
    """

    name: str
    log: DeltaLog
    reader: FooterReader
    now: float

    @cached_property
    def footers(self) -> Footers:
        """The footers of all live files."""
        snapshot = self.log.snapshot()
        return self.reader.read(snapshot.files, ColumnNames.of(snapshot.metadata).is_dropped)

    @cached_property
    def layout(self) -> LayoutReport:
        """The layout of the table's files."""
        return layout_report(self.log.snapshot(), self.footers)

    @cached_property
    def size(self) -> TableSize:
        """The numbers that Direct Lake limits."""
        now_ms = round(self.now * 1000)
        return measure(self.name, self.log.snapshot(), self.footers, growth(self.log, now_ms - _WEEK_MS, now_ms))

    @cached_property
    def types(self) -> tuple[TypeIssue, ...]:
        """The columns that Direct Lake can't load, or perhaps can't."""
        metadata = self.log.snapshot().metadata
        return type_issues(self.log.uri, ColumnNames.of(metadata), metadata.partition_columns, self.layout.columns)


@dataclass(frozen=True)
class DirectLakeReport:
    """A table at its newest version, committed at `timestamp_ms` (since 1970), as read at `now` (in seconds).

    `reframing` is what models with the given frames load when they are framed now. `script` has the steps of
    `maintenance` as SQL.
    """

    name: str
    uri: str
    version: int
    timestamp_ms: int
    now: float
    size: TableSize
    layout: LayoutReport
    advice: tuple[Advice, ...]
    types: tuple[TypeIssue, ...]
    vacuum: VacuumPlan
    reframing: tuple[FramingEffect, ...]
    maintenance: tuple[MaintenanceStep, ...]
    script: str


def table_report(
    table: InspectedTable,
    consumers: RetentionConsumers = NO_CONSUMERS,
    *,
    retain_hours: float | None = None,
    fabric_name: str | None = None,
    max_files: int | None = None,
) -> DirectLakeReport:
    """Report on the table, whose older versions the consumers read.

    `retain_hours` are those of `VACUUM … RETAIN`. Maintenance is planned for Fabric's Spark if the table's name in
    Fabric's SQL is given, and for a capacity's limit of files.

    Raises SettingError for a frame that the table can't have, and for a cache that can't be used, StopError
    for a data file that is missing or no Parquet, and what the log raises.
    """
    log, layout = table.log, table.layout
    snapshot, sql_name = log.snapshot(), fabric_name or table_at(log.uri)
    vacuum = guard = plan_vacuum(log, table.now, *consumers, retain_hours)
    if retain_hours is not None:  # maintenance runs VACUUM without RETAIN
        guard = plan_vacuum(log, table.now, *consumers)
    dropped = dropped_bytes(snapshot.files, table.footers)
    rewrites = rewrite_steps(snapshot, sql_name, vorder=fabric_name is not None, max_files=max_files, dropped=dropped)
    rewritten = any(step.statement for step in rewrites)
    maintenance = (*rewrites, *vacuum_steps(snapshot, sql_name, guard, rewritten=rewritten))
    framed = {frame.version for frame in consumers.frames}.intersection(log.versions())
    return DirectLakeReport(
        name=table.name,
        uri=log.uri,
        version=snapshot.version,
        timestamp_ms=snapshot.timestamp_ms,
        now=table.now,
        size=table.size,
        layout=layout,
        advice=advice(layout),
        types=table.types,
        vacuum=vacuum,
        reframing=tuple(framing_effect(before, snapshot) for before in log.snapshots(framed)),
        maintenance=maintenance,
        script=script(sql_name, snapshot.version, maintenance),
    )
