"""The job `maintenance`: mirrors pending commits of the tables that enable it, then optimizes and vacuums sources."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import dagster as dg

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.errors import ErrorRecord, MirrorError
from mirror_assets.features.direct_lake import MAINTENANCE
from mirror_assets.features.direct_lake.consumers import source_consumers
from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeTable, Maintenance
from mirror_assets.features.direct_lake.errors import LIVE_FILE_MISSING, VACUUM_REFUSED
from mirror_assets.features.direct_lake.footers import FooterReader
from mirror_assets.features.direct_lake.guardrails import sku_of
from mirror_assets.features.direct_lake.maintenance_plan import MaintenanceStep, StepKind, rewrite_steps, vacuum_steps
from mirror_assets.features.direct_lake.table_columns import ColumnNames, dropped_bytes
from mirror_assets.features.direct_lake.vacuum import plan_vacuum
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.mirror_tables import mirror_tables
from mirror_assets.orchestration.resources import fixed_config, project, resource_keys
from mirror_assets.orchestration.run_reports import require_all
from mirror_assets.orchestration.translator import AssetKind, MetadataItem
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.project import Project
from mirror_assets.source.errors import DATA_FILE_MISSING, FILE_UNFOUND
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.losses import SourceRead, proved
from mirror_assets.spark_names import spark_path, table_at

MAINTENANCE_OP = "maintain_tables"
# VACUUM runs after the plan was made, on a machine whose clock may be ahead.
_MARGIN_SECONDS = 3_600


@dataclass(frozen=True)
class MaintenanceReport:
    """A table's result in a maintenance run: the SQL statements that ran, and the error that stopped it, if any.

    `busy` names the other run that mirrors the table; maintenance then skipped it.
    """

    table: str
    statements: tuple[str, ...] = ()
    error: ErrorRecord | None = None
    busy: str | None = None

    def failed(self, error: MirrorError) -> "MaintenanceReport":
        """Return the report with the error that stopped the table."""
        return replace(self, error=error.record(self.table))


def maintenance_job(assets: MirrorAssets, tables: Sequence[TableSettings]) -> dg.JobDefinition:
    """Return the job for these tables, which enable maintenance."""

    @dg.op(
        name=assets.full_name(MAINTENANCE_OP),
        description="For each table: mirror pending commits, compact small files, delete old ones.",
        out=assets.out,
        required_resource_keys=resource_keys(assets),
    )
    def maintain_op(context: dg.OpExecutionContext) -> list[MaintenanceReport]:
        return [_maintained(context, assets, project(assets, context.resources), table) for table in tables]

    @dg.op(
        name=assets.full_name("all_maintained"),
        description="Fail the run if a table failed; the other tables were maintained.",
    )
    def all_maintained(reports: list[MaintenanceReport]) -> None:
        require_all({report.table: report.error for report in reports})

    @dg.job(
        name=assets.full_name(MAINTENANCE),
        description=f"Maintain the sources of {len(tables)} tables that enable it.",
        **fixed_config(assets),
    )
    def maintenance() -> None:
        all_maintained(maintain_op())

    return maintenance


def _maintained(
    context: dg.OpExecutionContext, assets: MirrorAssets, composed: Project, table: TableSettings
) -> MaintenanceReport:
    """Mirror pending commits of the table, run its maintenance, and report both; errors are in the report."""
    table_context = composed.table(table)
    report = MaintenanceReport(str(table_context.name))
    try:
        # A table that was never mirrored begins with a snapshot, so it has no pending commits.
        if table_context.manifest() is not None:
            (run,) = mirror_tables(context, assets, composed, [table])
            report = replace(report, error=run.error, busy=run.busy)
        if report.error is None and report.busy is None:
            for done in maintain(table_context, partial(composed.log, table.name), context.log.info):
                context.log_event(_observation(assets.key(AssetKind.SOURCE, table.name), done))
                report = replace(report, statements=(*report.statements, done.step.statement))
    except MirrorError as error:
        context.log.error(str(error))  # noqa: TRY400 the message suffices
        return report.failed(error)
    except Exception as error:
        context.log.exception(f"{table_context.name} failed")
        return report.failed(unexpected(report.table, error))
    return report


@dataclass(frozen=True)
class FileCounts:
    """Number and bytes of a table's files: the live ones, and all in its folder."""

    live_files: int
    live_bytes: int
    stored_files: int
    stored_bytes: int


def file_counts(log: DeltaLog) -> FileCounts:
    """Count the table's files as they are now."""
    live, stored = log.snapshot().files, log.stored_files(hidden=True)
    return FileCounts(len(live), sum(file.bytes for file in live), len(stored), sum(file.bytes for file in stored))


@dataclass(frozen=True)
class StepDone:
    """A finished maintenance step, and the table's files before and after it."""

    step: MaintenanceStep
    before: FileCounts
    after: FileCounts
    seconds: float


def maintain(
    context: TableContext, open_log: Callable[[], DeltaLog], report: Callable[[str], None]
) -> Iterator[StepDone]:
    """Run the enabled maintenance steps and yield each when it has run; report each omitted step with its reason.

    VACUUM is planned after OPTIMIZE and REORG, on the table as they leave it. Raises VACUUM_REFUSED
    instead of deleting a file that a frame, the mirror or the history needs; and what the Delta log, the plan and
    Spark raise.
    """

    def run(steps: Iterable[MaintenanceStep]) -> Iterator[StepDone]:
        for step in steps:
            if not step.statement:
                report(f"{context.name}: no {step.kind.value}: {step.why}")
                continue
            before, began = file_counts(open_log()), time.monotonic()
            _execute(context, step.statement)
            seconds = time.monotonic() - began
            yield StepDone(step, before, file_counts(open_log()), seconds)

    rewritten = False
    for done in run(_rewrites(context, open_log())):
        rewritten = True
        yield done
    if Maintenance.VACUUM in DirectLakeTable.of(context.table).maintenance:
        yield from run(_vacuum(context, open_log(), rewritten=rewritten))


def _rewrites(context: TableContext, log: DeltaLog) -> list[MaintenanceStep]:
    """Plan the enabled steps that rewrite files."""
    snapshot, own = log.snapshot(), DirectLakeTable.of(context.table)
    settings, sku = own.maintenance, own.direct_lake.sku
    purge, dropped = Maintenance.PURGE in settings, dict[str, int]()
    if purge:
        footers = FooterReader(log.uri, log.files).read(snapshot.files, ColumnNames.of(snapshot.metadata).is_dropped)
        dropped = dropped_bytes(snapshot.files, footers)
    return rewrite_steps(
        snapshot,
        table_at(spark_path(log.uri)),
        optimize=Maintenance.OPTIMIZE in settings,
        purge=purge,
        max_files=sku_of(sku).files if sku else None,
        dropped=dropped,
    )


def _vacuum(context: TableContext, log: DeltaLog, *, rewritten: bool) -> list[MaintenanceStep]:
    """Plan VACUUM. Raises VACUUM_REFUSED if it would delete a needed file now, or might."""
    snapshot, needed = log.snapshot(), source_consumers(context.config, context.table, log, context.manifest())
    plan = plan_vacuum(log, time.time() + _MARGIN_SECONDS, *needed)
    if not plan.is_safe:
        needs = {*plan.unknown_frames, *(need for file in plan.threatened for need in file.needed_by)}
        raise VACUUM_REFUSED(
            table=str(context.name),
            what=f"would delete {len(plan.threatened):,}" if plan.threatened else "might delete",
            needed_by=tuple(map(str, sorted(needs))),
            statement=plan.keeping(snapshot.metadata),
        )
    steps = vacuum_steps(snapshot, table_at(spark_path(log.uri)), plan, rewritten=rewritten)
    return [step for step in steps if step.kind is StepKind.VACUUM]


def _execute(context: TableContext, statement: str) -> None:
    try:
        with spark_errors(f"{context.name}, {statement}"):
            context.spark().sql(statement).collect()
    except FILE_UNFOUND.error as error:
        newest = context.log.state().version
        cause = proved(str(context.name), context.log, SourceRead(newest, newest, versions=(newest,)), error)
        # The newest version needs the file, so a rebuild would also fail.
        if isinstance(cause, DATA_FILE_MISSING.error):
            raise LIVE_FILE_MISSING(uri=context.log.uri, path=cause.file) from error
        raise cause from error


def _observation(source: dg.AssetKey, done: StepDone) -> dg.AssetObservation:
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
    return dg.AssetObservation(source, metadata=metadata)
