"""The jobs that run checks: one step for all tables, which logs the results as those of the assets' checks.

A job of asset checks would have a step for each asset of each table: with a hundred tables, its page is unreadable, and
most of its time goes into starting and ending steps.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import dagster as dg
from pydantic import Field

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.feature import report_changed
from mirror_assets.landing.names import TableName
from mirror_assets.landing.problems import ProblemKey, Severity, StoredProblem
from mirror_assets.orchestration.check_runs import (
    LONGEST_SECONDS,
    EvaluatedCheck,
    EvaluatedTable,
    TableChecks,
    checks_failed,
    is_blocking_failure,
)
from mirror_assets.orchestration.checks import RECONCILED, checks_of, require_known
from mirror_assets.orchestration.dagster_internals import (
    MAX_RETRIES_TAG,
    REPOSITORY_LABEL_TAG,
    keep_connections,
    log_asset_event,
)
from mirror_assets.orchestration.event_metadata import ChangedMirrors
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, MirrorAssets
from mirror_assets.orchestration.mirror_status import materialize_status
from mirror_assets.orchestration.partitions import delete_foreign_keys
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.reporting import (
    Reporting,
    RunTagMemory,
    discovery_results,
    evaluated,
    new_problems,
    overdue_results,
    without_lost_tables,
)
from mirror_assets.orchestration.resources import fixed_config, project, resource_keys
from mirror_assets.orchestration.runs import (
    COMMAND_TAG,
    EVALUATED_ALL,
    EVALUATED_SOME,
    EVALUATED_TAG,
    failing,
    failure,
    location_label,
    mirror_of_run,
    require_own_assets,
    tag_failing,
)
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.pipeline.project import Project, exporting_metrics

ALL_CHECKS = "all_checks"
CHECKS = "checks"
RECONCILE = "reconcile"
CHECK_OP = "check_tables"

# The interval of evaluations where `checks` has no schedule.
_MINUTES = 5
# The number of failed checks named in the log of a scheduled run.
_NAMED = 5


class CheckTables(dg.Config):
    """The tables and the checks, by name, of a run (empty: all).

    Without `spark` no JVM starts: the checks of staged slices and `reconciled` are left out. A run of a schedule
    records changed results, and fails only for new errors.
    """

    tables: list[str] = Field(default_factory=list)
    checks: list[str] = Field(default_factory=list)
    spark: bool = True
    # A default of this kind is left out of the launchpad.
    is_scheduled: bool = Field(default_factory=bool)

    @property
    def is_whole(self) -> bool:
        """Whether it evaluates every check that needs no Spark."""
        return not self.tables and not self.checks


def check_jobs(assets: MirrorAssets) -> list[dg.JobDefinition]:
    """Return the job of all checks, and those of the schedules."""
    settings = assets.config

    @dg.op(
        name=assets.full_name(CHECK_OP),
        out={},
        description="Run the checks of all tables, several tables at once.",
        required_resource_keys=resource_keys(assets),
    )
    def check_tables(context: dg.OpExecutionContext, config: CheckTables) -> Iterator[dg.AssetCheckEvaluation]:
        with failing():
            tables, names = settings.chosen(config.tables), require_known(settings, config.checks)
            composed = project(assets, context.resources, with_spark=config.spark, lands=False)
            mirror = composed.mirror().at_once()
        reporting = None if COMMAND_TAG in context.run.tags else _reporting(context, assets, composed, config)
        checks = TableChecks(
            context.instance,
            assets,
            composed,
            mirror,
            names,
            config.spark,
            config.is_scheduled,
            reporting.failed_before if reporting else frozenset(),
            None if names else ChangedMirrors(context.instance, assets),
        )
        found = list[EvaluatedCheck]()
        with exporting_metrics(settings, context.log.warning):
            applied = list[TableName]()
            evaluated_tables = _noting_changed(checks.of_tables(tables, context.log.warning), applied)
            if config.is_scheduled:
                found += _recorded(context, checks, tables, evaluated_tables)
            else:
                for one in evaluated_tables:
                    if one.changed is not None:
                        context.log_event(one.changed)
                    found += one.results
                    yield from (result.evaluation for result in one.results)
            report_changed(settings, applied, context.log.warning)
        new = _reported(context, checks, tables, config, found, reporting) if reporting else []
        if config.is_scheduled and config.is_whole:
            _end_evaluation(context, assets, composed)
        failed = [one.evaluation for one in found if is_blocking_failure(one.evaluation)]
        if failed and not config.is_scheduled:
            raise failure(checks_failed(failed))
        if new and config.is_scheduled:
            raise failure(new_problems(new))

    @dg.graph(name=assets.full_name("check"), description="Run the checks of the tables.")
    def check() -> None:
        check_tables()

    def scheduled(checks: CheckTables) -> dg.RunConfig:
        return dg.RunConfig(ops={assets.full_name(CHECK_OP): checks})

    fixed = fixed_config(assets)
    return [
        check.to_job(
            assets.full_name(ALL_CHECKS),
            "Every check on what is there now; the run fails when a blocking check does.",
            **fixed,
        ),
        check.to_job(
            assets.full_name(CHECKS),
            "Every check that needs no Spark; records what is new, sends alerts, and fails for a new error.",
            config=scheduled(CheckTables(spark=False, is_scheduled=True)),
            tags={MAX_RETRIES_TAG: "0"},  # the next run of the schedule is the retry
            **fixed,
        ),
        check.to_job(
            assets.full_name(RECONCILE),
            "Compare all mirrors with their sources; fails for a new error.",
            config=scheduled(CheckTables(checks=[RECONCILED], is_scheduled=True)),
            tags={MAX_RETRIES_TAG: "0"},
            **fixed,
        ),
    ]


def _noting_changed(evaluated_tables: Iterable[EvaluatedTable], applied: list[TableName]) -> Iterator[EvaluatedTable]:
    """Yield the tables, and add those whose mirror has changed to `applied`."""
    for one in evaluated_tables:
        applied += [one.table] if one.changed is not None else []
        yield one


def _recorded(
    context: dg.OpExecutionContext,
    checks: TableChecks,
    tables: Sequence[TableSettings],
    evaluated_tables: Iterable[EvaluatedTable],
) -> list[EvaluatedCheck]:
    """Log the mirrors that have changed with all their results, and what else is due; return all results.

    Logged, not yielded: Dagster fails a step for a blocking one.
    """
    keep_connections(context.instance)
    config, assets, began = checks.composed.config, checks.assets, time.monotonic()
    keys = {table.name: [check.key(assets, table.name) for check in checks_of(config, table)] for table in tables}
    recorded = RecordedChecks(context.instance, list(chain.from_iterable(keys.values())))
    found, logged = list[EvaluatedCheck](), 0
    for one in evaluated_tables:
        found += one.results
        changed = None if one.changed is None else one.changed.asset_key
        if one.changed is not None:
            log_asset_event(context, one.changed)
        new = {result.evaluation.asset_check_key: result.evaluation for result in one.results}
        due = [event for key, event in new.items() if key.asset_key == changed or recorded.is_due(event)]
        missing = [key for key in keys[one.table] if key.asset_key == changed and key not in new]
        due += [event for key in missing if (event := recorded.again(key)) is not None]
        logged += len(due)
        for event in due:
            log_asset_event(context, event)
    failed = [f"{one.key.check} of {one.key.subject}" for one in found if not one.evaluation.passed]
    named = f"{len(failed)} failed ({', '.join(failed[:_NAMED])}{', …' if len(failed) > _NAMED else ''})"
    took = f"{len(found)} checks in {time.monotonic() - began:.1f} s"
    context.log.info(f"{took}: {named if failed else 'none failed'}; {logged} recorded, the others unchanged")
    return found


def _reporting(
    context: dg.OpExecutionContext, assets: MirrorAssets, composed: Project, config: CheckTables
) -> Reporting:
    """Begin to report the evaluation of this run."""
    automation = assets.config.automation
    minutes = automation.checks_minutes(len(assets.config.tables)) or _MINUTES
    hours = automation.reconcile_every_hours if config.checks == [RECONCILED] else None
    label = location_label(context.run)
    tags = {} if label is None else {REPOSITORY_LABEL_TAG: label}
    outage = RunTagMemory(context.instance, context.run, tags)
    return Reporting(composed, mirror_of_run(context, assets.name), outage, 3600.0 * hours if hours else 60.0 * minutes)


def _reported(
    context: dg.OpExecutionContext,
    checks: TableChecks,
    tables: Sequence[TableSettings],
    config: CheckTables,
    found: Sequence[EvaluatedCheck],
    reporting: Reporting,
) -> list[StoredProblem]:
    """Report the evaluation; return the errors that are new."""
    results = without_lost_tables(evaluated(found), checks.composed.config)
    known: frozenset[ProblemKey] | None = None
    if config.is_whole:
        automation = checks.composed.config.automation
        hours = {RECONCILE: automation.reconcile_every_hours}
        for feature in checks.assets.config.all_features:
            hours |= {job: timetable.hours for job, timetable in feature.timetables().items()}
        due_hours = {job: every for job, every in hours.items() if every is not None}
        results |= discovery_results(checks.composed.config)
        results |= overdue_results(context.instance, checks.assets, due_hours, time.time())
        applicable = (check.problem(table) for table in tables for check in checks_of(checks.composed.config, table))
        known = frozenset((*applicable, *results))
        if any(rule.trouble for rule in checks.composed.config.discovered.rules):
            known |= reporting.failed_before  # tables that are not found now have not been removed
    new = reporting.finish(results, known)
    evaluated_checks = EVALUATED_ALL if config.is_whole else EVALUATED_SOME
    context.instance.add_run_tags(context.run_id, {EVALUATED_TAG: evaluated_checks})
    if config.is_whole:
        errors = {key for key, failed in results.items() if failed and failed.severity is Severity.ERROR}
        failing = sorted({key.subject for key in errors if key.asset})
        tag_failing(context.instance, checks.assets.full_name(MIRROR_ALL), reporting.outage.tags, failing)
    if reporting.zone_error is not None:
        context.log.error(f"the landing zone can't be used: {reporting.zone_error}")
    return new


def _end_evaluation(context: dg.OpExecutionContext, assets: MirrorAssets, composed: Project) -> None:
    """Show the status of all tables, tidy their partitions, and let features act.

    Raises dagster.Failure if another code location materializes the same assets.
    """
    for name in assets.config.names:
        for key in delete_foreign_keys(context.instance, assets.partitions_name(name)):
            context.log.warning(f"{name}: partition {key!r} was deleted: it is not a slice, and can't be materialized")
    materialize_status(context, assets, composed, LONGEST_SECONDS / 10)
    for feature in assets.config.all_features:
        feature.after_checks(assets.config)
    landing = [assets.key(AssetKind.LANDING, name) for name in assets.config.names]
    with failing():
        require_own_assets(context.instance, context.run, landing)
