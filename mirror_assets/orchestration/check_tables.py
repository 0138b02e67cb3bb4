"""The jobs that run checks: one step for all tables, which logs the results as those of the assets' checks.

A job of asset checks would have a step for each asset of each table: with a hundred tables, its page is unreadable, and
most of its time goes into starting and ending steps.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as NotDone
from concurrent.futures import as_completed
from dataclasses import replace
from functools import partial

import dagster as dg
from pydantic import Field

from mirror_assets.composition import Project, exporting_metrics
from mirror_assets.config import Config, TableSettings
from mirror_assets.orchestration.asset_names import AssetKind, asset_key
from mirror_assets.orchestration.check_steps import checks_failed, is_blocking_failure
from mirror_assets.orchestration.checks import RECONCILED, require_known
from mirror_assets.orchestration.fixed_config import fixed_config
from mirror_assets.orchestration.materialize import failing, failure
from mirror_assets.orchestration.mirror_status import observe_status
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.resources import LandingZone, SourceTables, SparkSessions, project
from mirror_assets.orchestration.run_tags import require_own_assets
from mirror_assets.orchestration.table_checks import TableChecks
from mirror_assets.pipeline.daemon_pool import DaemonPool
from mirror_assets.telemetry.record import record_check

ALL_CHECKS = "all_checks"
CHECKS = "checks"
RECONCILE = "reconcile"
CHECK_OP = "check_tables"

# Checks without Spark wait for stores most of the time; with Spark, each table at once takes memory.
_TABLES_AT_ONCE, _WITH_SPARK_AT_ONCE = 16, 4
# A table whose store never answers keeps a run of the schedule no longer than this.
_LONGEST_SECONDS = 900.0
# The number of failed checks named in the log of a scheduled run.
_NAMED = 5


class CheckTables(dg.Config):
    """The tables and the checks, by name, of a run (empty: all).

    Without `spark` no JVM starts: the checks of staged slices and `reconciled` are left out. A run of a schedule
    records changed results, and succeeds whatever the checks find.
    """

    tables: list[str] = Field(default_factory=list)
    checks: list[str] = Field(default_factory=list)
    spark: bool = True
    # A default of this kind is left out of the launchpad.
    is_scheduled: bool = Field(default_factory=bool)


def check_jobs(settings: Config) -> list[dg.JobDefinition]:
    """Return the job of all checks, and those of the schedules."""
    graph, fixed = _check_graph(settings), fixed_config(settings)
    checks, reconcile = CheckTables(spark=False, is_scheduled=True), CheckTables(checks=[RECONCILED], is_scheduled=True)
    return [
        graph.to_job(
            ALL_CHECKS, "Every check on what is there now; the run fails when a blocking check does.", **fixed
        ),
        graph.to_job(
            CHECKS,
            "Every check that needs no Spark; records what is new.",
            config=dg.RunConfig(ops={CHECK_OP: checks}),
            # Dagster's run monitoring ends one that was killed: the schedule skips runs while one is in progress.
            tags={dg.MAX_RUNTIME_SECONDS_TAG: str(round(2 * _LONGEST_SECONDS))},
            **fixed,
        ),
        graph.to_job(
            RECONCILE,
            "Compare all mirrors with their sources.",
            config=dg.RunConfig(ops={CHECK_OP: reconcile}),
            **fixed,
        ),
    ]


def _check_graph(settings: Config) -> dg.GraphDefinition:
    @dg.op(name=CHECK_OP, out={}, description="Run the checks of all tables, several tables at once.")
    def check_tables(
        context: dg.OpExecutionContext,
        config: CheckTables,
        landing_zone: LandingZone,
        sources: SourceTables,
        spark: SparkSessions,
    ) -> Iterator[dg.AssetCheckEvaluation]:
        with failing():
            tables = settings.chosen(config.tables)
            composed = project(settings, landing_zone, sources, spark if config.spark else None, lands=False)
            checks = _checks(context, config, composed, tables)
        with exporting_metrics(settings, context.log.warning):
            results = _evaluated(context, checks, tables)
            if checks.recorded is None:
                yield from _passed_on(results)
            else:
                _record(context, checks.recorded, results)
                if not config.tables and not config.checks:
                    observe_status(context, composed, _LONGEST_SECONDS / 10)
                    with failing():
                        landings = [asset_key(AssetKind.LANDING, table.name) for table in tables]
                        require_own_assets(context.instance, context.run, landings)

    @dg.graph(name="check", description="Run the checks of the tables.")
    def check() -> None:
        check_tables()

    return check


def _checks(
    context: dg.OpExecutionContext,
    config: CheckTables,
    composed: Project,
    tables: Sequence[TableSettings],
) -> TableChecks:
    mirror, names = composed.mirror().at_once(), require_known(config.checks)
    checks = TableChecks(context.instance, composed, mirror, names, config.spark)
    if not config.is_scheduled:
        return checks
    keys = [check.key(table.name) for table in tables for check in checks.selected(table)]
    # Where the schedule has no pace, a person runs its job.
    minutes = composed.config.automation.checks_minutes(len(composed.config.tables)) or 1
    return replace(checks, recorded=RecordedChecks(context.instance, keys, minutes))


def _evaluated(
    context: dg.OpExecutionContext, checks: TableChecks, tables: Sequence[TableSettings]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield what the checks find, table by table as they end; one that does not end is left alone, and has failed."""
    pool = DaemonPool("checks", _WITH_SPARK_AT_ONCE if checks.with_spark else _TABLES_AT_ONCE)
    limit = None if checks.with_spark else _LONGEST_SECONDS
    futures = {pool.submit(partial(_all_of, checks, table)): table for table in tables}
    try:
        for done in as_completed(futures, limit):
            yield from done.result()
    except NotDone:
        waiting = [table for future, table in futures.items() if not future.done()]
        context.log.warning(f"{len(waiting)} tables are left alone: no answer within {_LONGEST_SECONDS:.0f} s")
        yield from (checks.unanswered(table, _LONGEST_SECONDS) for table in waiting)


def _all_of(checks: TableChecks, table: TableSettings) -> list[dg.AssetCheckEvaluation]:
    found = list(checks.run(table))
    for result in found:
        record_check(str(table.name), result.check_name, passed=result.passed)
    return found


def _passed_on(results: Iterator[dg.AssetCheckEvaluation]) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield the results; raise dagster.Failure after them if a blocking check has failed."""
    failed = list[dg.AssetCheckEvaluation]()
    for found in results:
        if is_blocking_failure(found):
            failed.append(found)
        yield found
    if failed:
        raise failure(checks_failed(failed))


def _record(
    context: dg.OpExecutionContext, recorded: RecordedChecks, results: Iterator[dg.AssetCheckEvaluation]
) -> None:
    """Log the changed results. Logged, not yielded: Dagster fails a step that yields a failed blocking check."""
    began, many, same, failed = time.monotonic(), 0, list[dg.AssetCheckEvaluation](), list[str]()
    for found in results:
        many += 1
        if not found.passed:
            failed.append(f"{found.check_name} of {found.asset_key.to_user_string()}")
        if recorded.has_changed(found):
            context.log_event(found)  # type: ignore[arg-type]  # it is recorded; the annotation lags
        else:
            same.append(found)
    again = recorded.due(same)
    for found in again:
        context.log_event(found)  # type: ignore[arg-type]  # as above
    seconds, recorded_now = time.monotonic() - began, many - len(same) + len(again)
    named = f"{len(failed)} failed ({', '.join(failed[:_NAMED])}{', …' if len(failed) > _NAMED else ''})"
    failures = named if failed else "none failed"
    context.log.info(f"{many} checks in {seconds:.1f} s: {failures}; {recorded_now} recorded, the others unchanged")
