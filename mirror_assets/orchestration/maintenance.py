"""The job `maintenance`: mirrors pending commits of the tables that enable it, then optimizes and vacuums sources."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import dagster as dg

from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import Kind, MetadataItem, asset_key
from mirror_assets.orchestration.bare_jobs import bare
from mirror_assets.orchestration.mirror_tables import mirror_tables
from mirror_assets.orchestration.resources import LandingZone, SourceTables, SparkSessions, project
from mirror_assets.orchestration.run_reports import MaintenanceReport, require_all
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.maintain import StepDone, maintain

MAINTENANCE = "maintenance"
MAINTENANCE_OP = "maintain_tables"


def maintenance_jobs(settings: Config) -> list[dg.JobDefinition]:
    """Return one job for all tables that enable maintenance; an empty list if there is no such table."""
    tables = [table for table in settings.all_tables() if table.maintenance.is_on]
    return [_maintenance_job(settings, tables)] if tables else []


def _maintenance_job(settings: Config, tables: Sequence[TableSettings]) -> dg.JobDefinition:
    @dg.op(
        name=MAINTENANCE_OP, description="For each table: mirror pending commits, compact small files, delete old ones."
    )
    def maintain_op(
        context: dg.OpExecutionContext, landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions
    ) -> list[MaintenanceReport]:
        reports = []
        for table in tables:
            composed = project(settings, landing_zone, sources, spark)
            table_context = composed.table(table)
            report = MaintenanceReport(str(table_context.name))
            try:
                # A table that was never mirrored begins with a snapshot, so it has no pending commits.
                if table_context.manifest() is not None:
                    (run,) = mirror_tables(context, composed, [table])
                    report = replace(report, error=run.error, code=run.code, family=run.family, busy=run.busy)
                if report.error is None and report.busy is None:
                    for done in _steps(context, table_context, sources):
                        report = replace(report, statements=(*report.statements, done.step.statement))
            except MirrorError as error:
                context.log.error(str(error))  # noqa: TRY400 the message suffices
                report = report.failed(error)
            except Exception as error:
                context.log.exception(f"{table_context.name} failed")
                report = report.failed(unexpected(report.table, error))
            reports.append(report)
        return reports

    @dg.op(description="Fail the run if a table failed; the other tables were maintained.")
    def all_maintained(reports: list[MaintenanceReport]) -> None:
        require_all(reports)

    @dg.job(
        name=MAINTENANCE,
        description=f"Maintain the sources of {len(tables)} tables that enable it.",
        **bare(settings),
    )
    def maintenance() -> None:
        all_maintained(maintain_op())

    return maintenance


def _steps(context: dg.OpExecutionContext, table_context: TableContext, sources: SourceTables) -> Iterator[StepDone]:
    """Run the maintenance steps; after each, log an AssetObservation of the source, and yield the step."""
    for done in maintain(table_context, lambda: sources.table_log(table_context.name), context.log.info):
        context.log_event(_observation(table_context.name, done))
        yield done


def _observation(table: TableName, done: StepDone) -> dg.AssetObservation:
    """Return an observation with a step's predicted and actual effect; the UI plots its numbers over time."""
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
