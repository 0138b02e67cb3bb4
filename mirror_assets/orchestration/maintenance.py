"""The job that maintains sources, of tables that ask for it: publish, optimize, vacuum."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import dagster as dg

from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import Kind, MetadataItem, asset_key
from mirror_assets.orchestration.mirror_tables import mirror_tables
from mirror_assets.orchestration.resources import LandingZone, SourceTables, SparkSessions, project
from mirror_assets.orchestration.run_reports import MaintenanceReport, require_all
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.maintain import StepDone, maintain

MAINTENANCE = "maintenance"
MAINTENANCE_OP = "maintain_tables"


def maintenance_jobs(settings: Config) -> list[dg.JobDefinition]:
    """The job of all tables that ask for maintenance; none where none does."""
    tables = [table for table in settings.all_tables() if table.maintenance.is_on]
    return [_maintenance_job(settings, tables)] if tables else []


def _maintenance_job(settings: Config, tables: Sequence[TableSettings]) -> dg.JobDefinition:
    @dg.op(name=MAINTENANCE_OP, description="Mirror what waits, put files together, delete old ones, table by table.")
    def maintain_op(
        context: dg.OpExecutionContext, landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions
    ) -> list[MaintenanceReport]:
        def one(table: TableSettings) -> MaintenanceReport:
            table_context = project(settings, landing_zone, sources, spark).table(table)
            publish = _publisher(context, settings, table_context, landing_zone, sources, spark)
            return _maintained(context, table_context, sources, publish)

        return [one(table) for table in tables]

    @dg.op(description="Fail the run when a table failed; the others have gone on.")
    def all_maintained(reports: list[MaintenanceReport]) -> None:
        require_all(reports)

    @dg.job(name=MAINTENANCE, description=f"Maintain the sources of {len(tables)} tables that ask for it.")
    def maintenance() -> None:
        all_maintained(maintain_op())

    return maintenance


_Publish = Callable[[MaintenanceReport], MaintenanceReport]


def _publisher(
    context: dg.OpExecutionContext,
    settings: Config,
    table_context: TableContext,
    zone: LandingZone,
    sources: SourceTables,
    spark: SparkSessions,
) -> _Publish:
    """What mirrors the commits that wait; nothing of a table that was never mirrored: it begins with a snapshot."""

    def publish(report: MaintenanceReport) -> MaintenanceReport:
        if table_context.manifest() is None:
            return report
        (mirrored,) = mirror_tables(context, settings, [table_context.table], zone, sources, spark)
        return replace(report, error=mirrored.error, code=mirrored.code, family=mirrored.family, busy=mirrored.busy)

    return publish


def _maintained(
    context: dg.OpExecutionContext, table_context: TableContext, sources: SourceTables, publish: _Publish
) -> MaintenanceReport:
    report = MaintenanceReport(str(table_context.name))
    try:
        report = publish(report)
        if report.error or report.busy:
            return report
        for done in maintain(table_context, lambda: sources.table_log(table_context.name), context.log.info):
            context.log_event(_observation(table_context.name, done))
            report = replace(report, statements=(*report.statements, done.step.statement))
    except MirrorError as error:
        context.log.error(str(error))  # noqa: TRY400 it says what to do; where it was raised says nothing more
        return report.failed(error)
    except Exception as error:
        context.log.exception(f"{table_context.name} failed")
        return report.failed(unexpected(report.table, error))
    return report


def _observation(table: TableName, done: StepDone) -> dg.AssetObservation:
    """What a step was to do to the source, and what it did; numbers become plots over time in the UI."""
    kind, effect = done.step.kind.value, done.step.effect
    metadata: dict[str, MetadataItem] = {
        f"{kind}_statement": done.step.statement,
        f"{kind}_why": done.step.why,
        f"{kind}_seconds": round(done.seconds, 3),
    }
    if effect is not None:
        predicted = {name: value for name, value in asdict(effect).items() if value is not None}
        metadata |= {f"{kind}_predicted_{name}": value for name, value in predicted.items()}
    metadata |= {f"{kind}_{name}_before": value for name, value in asdict(done.before).items()}
    metadata |= {f"{kind}_{name}_after": value for name, value in asdict(done.after).items()}
    return dg.AssetObservation(asset_key(Kind.SOURCE, table), metadata=metadata)
