"""The jobs that run checks: one step for all tables, which logs the results as those of the assets' checks.

A job of asset checks would have a step for each asset of each table: with a hundred tables, its page is unreadable, and
most of its time goes into starting and ending steps.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import TimeoutError as NotDone
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from functools import partial

import dagster as dg
from pydantic import Field

from mirror_assets.composition import Project, exporting_metrics
from mirror_assets.config import TableSettings
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, UnknownOutcome
from mirror_assets.fabric.monitoring import Mirror
from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.check import Check, CheckedTable
from mirror_assets.orchestration.check_steps import checks_failed, is_blocking_failure
from mirror_assets.orchestration.checks import RECONCILED, checks_of, require_known
from mirror_assets.orchestration.fixed_config import fixed_config
from mirror_assets.orchestration.materialize import failing, failure
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.mirror_status import observe_status
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.resources import project, resource_keys
from mirror_assets.orchestration.run_tags import require_own_assets
from mirror_assets.pipeline.daemon_pool import DaemonPool
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.silent_stores import SilentStores
from mirror_assets.telemetry.record import record_check
from mirror_assets.verify.check_result import CheckResult

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
# A source or mirror that can't be reached for this long is an error, no longer a warning.
_WARNING_SECONDS = 3600.0
_SINCE = "unreachable_since"


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


@dataclass(frozen=True)
class _TableChecks:
    """The checks of a project's tables.

    `names` selects checks; empty: all. Without `with_spark`, those that need Spark are left out. A scheduled run reads
    only landing files that are new, and an unreachable store is a warning at first.
    """

    instance: dg.DagsterInstance
    assets: MirrorAssets
    composed: Project
    mirror: Mirror
    names: frozenset[str]
    with_spark: bool
    is_scheduled: bool
    _silent: SilentStores = field(default_factory=SilentStores)
    _now: float = field(default_factory=time.time)

    def selected(self, table: TableSettings) -> Sequence[Check]:
        """Return the table's checks that run."""
        return [
            check
            for check in checks_of(self.composed.config, table)
            if (not self.names or check.name in self.names) and (self.with_spark or not check.needs_spark)
        ]

    def run(self, table: TableSettings) -> list[dg.AssetCheckEvaluation]:
        """Run the table's checks one after another, and return their results.

        A check that can't run has failed. If one cause fails several checks, the first reports it, and the others keep
        their last results.
        """
        assets = self.assets
        checked = CheckedTable(
            self.instance, assets, self.composed, table, self.is_scheduled, self.with_spark, self.mirror
        )
        causes, results = set[str](), list[dg.AssetCheckEvaluation]()
        for check in self.selected(table):
            try:
                with self._silent.asking(table, zone=check.reads_zone, source=check.reads_source):
                    found = check.run(checked)
            except Exception as raised:  # noqa: BLE001 a defect of one table must not stop the checks of the others
                error = raised if isinstance(raised, MirrorError) else unexpected(str(table.name), raised)
                cause = str(error) if error.code is ErrorCode.UNEXPECTED else error.code.value
                if cause in causes:
                    continue
                causes.add(cause)
                found = self._unable(check.key(assets, table.name), error)
            if found is not None:
                if not found.passed and "code" in found.metadata:
                    causes.add(str(found.metadata["code"]))
                record_check(str(table.name), check.name, passed=found.passed)
                results.append(check.evaluation(assets, table.name, found))
        return results

    def unanswered(self, table: TableSettings, seconds: float) -> dg.AssetCheckEvaluation:
        """Return the result for a table whose checks have not ended after this many seconds."""
        first = self.selected(table)[0]
        error = RetryError(
            f"the checks of {table.name} have not ended after {seconds:.0f} s: a store does not respond.",
            "check that this machine reaches the stores of the source and of the landing zone.",
            code=ErrorCode.STORE_UNAVAILABLE,
        )
        return first.evaluation(self.assets, table.name, self._unable(first.key(self.assets, table.name), error))

    def _unable(self, key: dg.AssetCheckKey, error: MirrorError) -> CheckResult:
        """Return the result of a check that can't run; in a scheduled run, first a warning if a retry may help."""
        last = RecordedChecks(self.instance, [key]).last(key)
        recorded = last.metadata.get(_SINCE) if last is not None else None
        since = float(recorded.value) if isinstance(recorded, dg.FloatMetadataValue) and recorded.value else self._now
        may_resolve = isinstance(error, RetryError | UnknownOutcome) and self._now - since < _WARNING_SECONDS
        return CheckResult(
            key.name,
            (f"it could not be checked: {error}",),
            {"code": error.code.value, _SINCE: since},
            is_warning=self.is_scheduled and may_resolve,
            next_step=error.next_step,
        )


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
            tables, names = settings.chosen(config.tables), require_known(config.checks)
            composed = project(assets, context.resources, with_spark=config.spark, lands=False)
            mirror = composed.mirror().at_once()
        checks = _TableChecks(context.instance, assets, composed, mirror, names, config.spark, config.is_scheduled)
        with exporting_metrics(settings, context.log.warning):
            if config.is_scheduled:
                keys = [check.key(assets, table.name) for table in tables for check in checks.selected(table)]
                _record(context, RecordedChecks(context.instance, keys), _evaluated(context, checks, tables))
            else:
                failed = list[dg.AssetCheckEvaluation]()
                for found in _evaluated(context, checks, tables):
                    failed += [found] if is_blocking_failure(found) else []
                    yield found
                if failed:
                    raise failure(checks_failed(failed))
            if config.is_scheduled and not config.tables and not config.checks:
                observe_status(context, assets, composed, _LONGEST_SECONDS / 10)
                with failing():
                    require_own_assets(context.instance, context.run, assets.keys(AssetKind.LANDING))

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
            "Every check that needs no Spark; records what is new.",
            config=scheduled(CheckTables(spark=False, is_scheduled=True)),
            # Dagster's run monitoring ends one that was killed: the schedule skips runs while one is in progress.
            tags={dg.MAX_RUNTIME_SECONDS_TAG: str(round(2 * _LONGEST_SECONDS))},
            **fixed,
        ),
        check.to_job(
            assets.full_name(RECONCILE),
            "Compare all mirrors with their sources.",
            config=scheduled(CheckTables(checks=[RECONCILED], is_scheduled=True)),
            **fixed,
        ),
    ]


def _evaluated(
    context: dg.OpExecutionContext, checks: _TableChecks, tables: Sequence[TableSettings]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield what the checks find, table by table as they end; one that does not end is left alone, and has failed."""
    pool = DaemonPool("checks", _WITH_SPARK_AT_ONCE if checks.with_spark else _TABLES_AT_ONCE)
    limit = None if checks.with_spark else _LONGEST_SECONDS
    futures = {pool.submit(partial(checks.run, table)): table for table in tables}
    try:
        for done in as_completed(futures, limit):
            yield from done.result()
    except NotDone:
        waiting = [table for future, table in futures.items() if not future.done()]
        context.log.warning(f"{len(waiting)} tables are left alone: no answer within {_LONGEST_SECONDS:.0f} s")
        yield from (checks.unanswered(table, _LONGEST_SECONDS) for table in waiting)


def _record(
    context: dg.OpExecutionContext, recorded: RecordedChecks, results: Iterable[dg.AssetCheckEvaluation]
) -> None:
    """Log the results that are due. Logged, not yielded: Dagster fails a step that yields a failed blocking check."""
    began, total, recorded_now, failed = time.monotonic(), 0, 0, list[str]()
    for found in results:
        total += 1
        if not found.passed:
            failed.append(f"{found.check_name} of {found.asset_key.to_user_string()}")
        if recorded.is_due(found):
            recorded_now += 1
            context.log_event(found)  # type: ignore[arg-type]  # it is recorded; the annotation lags
    named = f"{len(failed)} failed ({', '.join(failed[:_NAMED])}{', …' if len(failed) > _NAMED else ''})"
    failures, seconds = named if failed else "none failed", time.monotonic() - began
    context.log.info(f"{total} checks in {seconds:.1f} s: {failures}; {recorded_now} recorded, the others unchanged")
