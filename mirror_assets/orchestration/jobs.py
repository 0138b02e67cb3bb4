"""Jobs: mirror all tables, one schema or one table, replicate, repair, rebuild, ask the doctor; and those of others."""

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import chain

import dagster as dg
from pydantic import Field

from mirror_assets.config.discovered import When, with_found_tables
from mirror_assets.encode.errors import MACHINE_UNFIT
from mirror_assets.errors import MirrorError
from mirror_assets.feature import report_changed
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import MonitoredTable
from mirror_assets.orchestration.check_jobs import check_jobs
from mirror_assets.orchestration.check_runs import log_checks
from mirror_assets.orchestration.dagster_internals import PARTITION_NAME_TAG, Job
from mirror_assets.orchestration.event_metadata import ChangedMirrors
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, MirrorAssets
from mirror_assets.orchestration.mirror_tables import mirror_tables
from mirror_assets.orchestration.old_runs import old_runs_jobs
from mirror_assets.orchestration.resident import FollowSources, follow_tables
from mirror_assets.orchestration.resources import fixed_config, project, resource_keys, zone_of
from mirror_assets.orchestration.run_reports import RebuildReport, RepairReport, TableReport, require_all, summary
from mirror_assets.orchestration.runs import WAIT_SECONDS, cancel, failing, failure, stopping, tag_tables
from mirror_assets.orchestration.table_events import EventQueue, TableEvents
from mirror_assets.orchestration.translator import DEFAULT_GROUP, AssetKind
from mirror_assets.pipeline.context import manifest_or_none
from mirror_assets.pipeline.doctor import DoctorAnswer, DoctorVerdict, examine_mirror, examine_sources, examine_zone
from mirror_assets.pipeline.leases import leased
from mirror_assets.pipeline.project import exporting_metrics
from mirror_assets.pipeline.rebuild_table import is_rebuilding, plan_rebuild, rebuild_table
from mirror_assets.pipeline.repair_table import repair_table
from mirror_assets.source.ranges import parse_range

MIRROR_SCHEMA = "mirror_schema"
MIRROR_TABLE = "mirror_table"
REPLICATE = "replicate"
REBUILD = "rebuild"
REPAIR = "repair"
DOCTOR = "doctor"
TABLES_OP = "mirror_tables"
REPLICATE_OP = "replicate_tables"
REBUILD_OP = "rebuild_table"
REPAIR_OP = "repair_table"
ZONE_OP, SOURCES_OP = "examine_landing_zone", "examine_sources"
_REPAIR = "Land the difference between one table's source and its mirror: choose the table's partition."
_REBUILD = "Rebuild one table from a snapshot of its source: choose the table's partition."


class MirrorTables(dg.Config):
    """The tables that a run mirrors (none: all of the job's), and the range of versions or times, or how to follow."""

    tables: list[str] = Field(default_factory=list)
    first: str | None = None
    last: str | None = None
    # A default of this kind is left out of the launchpad.
    clip: bool = Field(default_factory=bool)
    follow: FollowSources | None = None


class DoctorConfig(dg.Config):
    """The tables to examine (empty: all), whether with Spark, and whether to check the keys of all rows."""

    tables: list[str] = Field(default_factory=list)
    spark: bool = True
    thorough: bool = False


def build_jobs(assets: MirrorAssets) -> list[Job]:
    """Return every job of the mirror."""
    tables = assets.config.all_tables()
    groups: dict[str, dict[str, list[str]]] = {
        assets.full_name(MIRROR_TABLE): {str(table.name): [str(table.name)] for table in tables},
        assets.full_name(MIRROR_SCHEMA): {},
    }
    for table in tables:
        schema = table.name.schema or DEFAULT_GROUP
        groups[assets.full_name(MIRROR_SCHEMA)].setdefault(schema, []).append(str(table.name))
    mirror = _mirror_graph(assets, groups)
    all_tables = f"Mirror {len(tables)} tables until nothing is left."

    def partitioned(name: str, description: str) -> Job:
        # Dagster's daemon reads each job every minute: one for each of hundreds of tables would keep it busy.
        keys = dg.StaticPartitionsDefinition(list(groups[assets.full_name(name)]))
        return mirror.to_job(
            name=assets.full_name(name), partitions_def=keys, description=description, **fixed_config(assets)
        )

    jobs = [
        mirror.to_job(name=assets.full_name(MIRROR_ALL), description=all_tables, **fixed_config(assets)),
        partitioned(MIRROR_SCHEMA, "Mirror the tables of one schema: choose its partition."),
        partitioned(MIRROR_TABLE, "Mirror one table: choose its partition."),
        _replicate_job(assets),
        _rebuild_job(assets),
        _repair_job(assets),
        *(job for feature in assets.config.all_features for job in feature.jobs(assets)),
        doctor_job(assets),
        *check_jobs(assets),
    ]
    return [*jobs, *old_runs_jobs(assets, [job.name for job in jobs])]


def _partition(context: dg.OpExecutionContext, keys: Collection[str]) -> str:
    """Return the run's partition key. Ends the run as canceled without one: no table was chosen."""
    key = context.run.tags.get(PARTITION_NAME_TAG)
    if key is None or key not in keys:
        chosen = "no partition was chosen" if key is None else f"{key!r} is no partition of this job any more"
        cancel(context, f"{chosen}: launch the job {context.job_name} again and choose one of its partitions.")
    return key


def _mirror_graph(assets: MirrorAssets, groups: Mapping[str, Mapping[str, list[str]]]) -> dg.GraphDefinition:
    """Return the graph of ops that mirrors tables; an asset job can't, because tables have different partitions.

    `groups` has the tables of each partition of the jobs that have partitions: the run's partition decides.
    """
    settings = assets.config

    @dg.op(
        name=assets.full_name(TABLES_OP),
        description="Plan, stage, check and land each table until nothing is left.",
        out=assets.out,
        required_resource_keys=resource_keys(assets),
    )
    def tables_op(context: dg.OpExecutionContext, config: MirrorTables) -> list[TableReport]:
        group = groups.get(context.job_name)
        with failing():
            chosen = settings.chosen(config.tables if group is None else group[_partition(context, group)])
        queue = EventQueue(context.log, keeps_events=config.follow is not None)
        queue.record(partial(tag_tables, context.instance, context.run_id, [table.name for table in chosen]))
        if config.follow is not None:
            batch, is_resident = config.follow.batch, config.follow.minutes != 0
            reporting = exporting_metrics(settings, queue.warning, is_resident=is_resident, batch=batch)
            with failing(), stopping(context), reporting:
                composed = project(assets, context.resources, queue.info)
                return follow_tables(context, assets, composed, chosen, config.follow, queue)
        try:
            composed = project(assets, context.resources, context.log.info)
        except MACHINE_UNFIT.error as error:  # no table has failed
            raise failure(error) from error
        except MirrorError as error:
            return [TableReport(str(table.name)).failed(error) for table in chosen]
        with stopping(context), exporting_metrics(settings, context.log.warning):
            commits = parse_range(config.first, config.last, clip=config.clip)
            reports = mirror_tables(context, assets, composed, chosen, commits)
        context.log.info(summary(reports))
        return reports

    @dg.op(
        name=assets.full_name("all_mirrored"),
        description="Fail the run when a table failed; the other tables were mirrored.",
    )
    def all_mirrored(reports: list[TableReport]) -> None:
        require_all({report.table: report.error for report in reports})

    @dg.graph(name=assets.full_name("mirror"), description="Mirror tables until nothing is left.")
    def mirror() -> None:
        all_mirrored(tables_op())

    return mirror


def _replicate_job(assets: MirrorAssets) -> Job:
    settings = assets.config

    @dg.op(
        name=assets.full_name(REPLICATE_OP),
        description="One iteration of the local stand-in, or the status that Fabric reports.",
        out=assets.out,
        required_resource_keys=resource_keys(assets, with_spark=False),
    )
    def replicate_tables(context: dg.OpExecutionContext) -> list[MonitoredTable]:
        with failing(), stopping(context), exporting_metrics(settings, context.log.warning):
            composed = project(assets, context.resources, with_spark=False, lands=False)
            mirror = composed.mirror()
            statuses = [status for status in mirror.poll() if status.name in settings.names]
            changed, at_once, applied = ChangedMirrors(context.instance, assets), mirror.at_once(), list[TableName]()
            for status in statuses:
                event = changed.event(status, manifest_or_none(composed.store, status.name))
                if event is not None:
                    applied.append(status.name)
                    context.log_event(event)
                    log_checks(context, assets, composed, settings.table(status.name), AssetKind.MIRROR, mirror=at_once)
            report_changed(settings, applied, context.log.warning)
        return statuses

    description = "Observe the mirror; the local stand-in first applies what has landed."
    return _job_of(assets, replicate_tables, REPLICATE, description)


def _job_of(
    assets: MirrorAssets, op: dg.OpDefinition, name: str, description: str, *, of_one_table: bool = False
) -> Job:
    """Return the job of one op; a job `of_one_table` has a partition for each table."""
    keys = dg.StaticPartitionsDefinition([str(table) for table in assets.config.names]) if of_one_table else None

    @dg.job(name=assets.full_name(name), description=description, partitions_def=keys, **fixed_config(assets))
    def job() -> None:
        op()

    return job


def _repair_job(assets: MirrorAssets) -> Job:
    settings = assets.config

    @dg.op(
        name=assets.full_name(REPAIR_OP),
        description="Compare mirror and source, and land the difference; the table stays available.",
        out=assets.out,
        required_resource_keys=resource_keys(assets),
    )
    def repair_op(context: dg.OpExecutionContext) -> RepairReport:
        with failing():
            table = settings.table(_partition(context, settings.tables))
            tag_tables(context.instance, context.run_id, [table.name])
            composed = project(assets, context.resources, context.log.info)
            table_context, mirror = composed.table(table), composed.mirror()
        with (
            stopping(context),
            exporting_metrics(settings, context.log.warning),
            failing(),
            leased(table_context, context.run_id, WAIT_SECONDS),
        ):
            repaired, events = repair_table(table_context, mirror, context.log.info), TableEvents(context, assets)
            if repaired is None:
                return RepairReport(str(table.name))
            events.planned(table.name, [repaired.planned])
            events.landed(table_context, repaired)
            events.checked(table_context, repaired)
            log_checks(context, assets, composed, table, AssetKind.SOURCE, AssetKind.LANDING)
        rows = repaired.record.markers
        return RepairReport(str(table.name), repaired.record.slice.last, rows.upserts, rows.updates, rows.deletes)

    return _job_of(assets, repair_op, REPAIR, _REPAIR, of_one_table=True)


def _rebuild_job(assets: MirrorAssets) -> Job:
    settings = assets.config

    @dg.op(
        name=assets.full_name(REBUILD_OP),
        description="Drop the table folder, wait for the mirror, land a snapshot, wait until the table is back.",
        config_schema={
            "confirm": dg.Field(
                str, default_value="", description="The table's name again: its folder is deleted and loaded again."
            ),
        },
        out=assets.out,
        required_resource_keys=resource_keys(assets),
    )
    def rebuild_op(context: dg.OpExecutionContext) -> RebuildReport:
        with failing():
            table = settings.table(_partition(context, settings.tables))
            tag_tables(context.instance, context.run_id, [table.name])
            composed = project(assets, context.resources, context.log.info)
            table_context, mirror = composed.table(table), composed.mirror()
        if context.op_config["confirm"] != str(table.name) and not is_rebuilding(table_context):
            consequence = plan_rebuild(table_context).consequence
            cancel(context, f"{consequence}. To start it, set `confirm` to {table.name} and launch again.")
        with (
            stopping(context),
            exporting_metrics(settings, context.log.warning),
            failing(),
            leased(table_context, context.run_id, WAIT_SECONDS),  # waits for another run that works on the table
        ):
            published = rebuild_table(table_context, mirror, context.log.info)
            TableEvents(context, assets).rebuilt(table_context, published)
            log_checks(context, assets, composed, table, AssetKind.SOURCE, AssetKind.LANDING)
        manifest = published.manifest
        return RebuildReport(str(table.name), manifest.epoch, manifest.covered, manifest.next_number - 1)

    return _job_of(assets, rebuild_op, REBUILD, _REBUILD, of_one_table=True)


def doctor_job(assets: MirrorAssets) -> dg.JobDefinition:
    """Return the job; without Spark, it starts no JVM."""

    @dg.op(
        name=assets.full_name(ZONE_OP),
        description="Probe the landing zone, in a scratch folder, for what publishing needs.",
        out=assets.out,
        required_resource_keys=resource_keys(assets, with_spark=False),
    )
    def zone_op(context: dg.OpExecutionContext) -> list[DoctorAnswer]:
        with failing():
            return _logged(context, examine_zone(zone_of(assets, context.resources).open()))

    @dg.op(
        name=assets.full_name(SOURCES_OP),
        description="Ask each source, through both readers, whether it can be mirrored.",
        out=assets.out,
        required_resource_keys=resource_keys(assets),
    )
    def sources_op(context: dg.OpExecutionContext, config: DoctorConfig) -> list[DoctorAnswer]:
        with failing():
            composed = project(assets, context.resources, with_spark=config.spark, lands=False)
            tables = composed.tables(config.tables)
            found = with_found_tables(assets.config, When.NEVER)  # the definitions may be older than the newest scan
            of_mirror = examine_mirror(found, composed.store, tables)
            of_sources = examine_sources(tables, with_spark=config.spark, thorough=config.thorough)
            return _logged(context, chain(of_mirror, of_sources))

    @dg.op(name=assets.full_name("all_well"), description="Fail the run when an answer is no.")
    def all_well(of_zone: list[DoctorAnswer], of_sources: list[DoctorAnswer]) -> None:
        answers = (*of_zone, *of_sources)
        wrong = {f"{one.subject}: {one.question}": one.text for one in answers if one.verdict is DoctorVerdict.NO}
        if wrong:
            first = next(f"{asked} {text}" for asked, text in wrong.items())
            what = f"{len(wrong)} of {len(answers)} answers are no: {first}"
            raise dg.Failure(what, metadata=wrong, allow_retries=False)

    @dg.job(
        name=assets.full_name(DOCTOR),
        description="Ask landing zone and sources whether mirroring can work.",
        **fixed_config(assets),
    )
    def doctor() -> None:
        all_well(zone_op(), sources_op())

    return doctor


def _logged(context: dg.OpExecutionContext, answers: Iterable[DoctorAnswer]) -> list[DoctorAnswer]:
    """Log each answer when it arrives; return all."""
    found = list[DoctorAnswer]()
    for one in answers:
        found.append(one)
        log = context.log.info if one.verdict in (DoctorVerdict.OK, DoctorVerdict.NOT_ASKED) else context.log.warning
        log(f"{one.verdict.value}: {one.subject}: {one.question} {one.text}")
    return found
