"""How checks run: as steps of asset runs, with failed runs, and for many tables at once."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as NotDone
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import dagster as dg

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, StopError, UnknownOutcome
from mirror_assets.landing.names import TableName
from mirror_assets.landing.problems import ProblemKey
from mirror_assets.monitoring import Mirror
from mirror_assets.orchestration.asset_check import Check, CheckedTable
from mirror_assets.orchestration.checks import BLOCKING, check_slices, checks_of, staged_checks
from mirror_assets.orchestration.errors import CHECKS_LATE, RUN_CHECKS_FAILED
from mirror_assets.orchestration.event_metadata import ChangedMirrors
from mirror_assets.orchestration.mirror_assets import MirrorAssets, step_name
from mirror_assets.orchestration.partitions import requested_slices, runs_slices
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.resources import project, resource_keys
from mirror_assets.orchestration.runs import failing, failure
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.orchestration.units import count, joined
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.land_slice import staged_ahead
from mirror_assets.pipeline.many_tables import DaemonPool, SilentStores
from mirror_assets.pipeline.project import Project
from mirror_assets.telemetry.record import record_check
from mirror_assets.verify.check_result import CheckResult

# Checks without Spark wait for stores most of the time; with Spark, each table at once takes memory.
_TABLES_AT_ONCE, _WITH_SPARK_AT_ONCE = 16, 4
# A table whose store never answers keeps a run of the schedule no longer than this.
LONGEST_SECONDS = 900.0


def check_definitions(assets: MirrorAssets, table: TableSettings) -> Iterator[dg.AssetChecksDefinition]:
    """Yield the steps of the table's checks."""
    yield _staged_step(assets, table)
    by_asset: dict[dg.AssetKey, list[Check]] = {}
    for check in checks_of(assets.config, table):
        if check.asset != AssetKind.CHANGES:
            by_asset.setdefault(assets.checked(check.asset, table.name), []).append(check)
    for checks in by_asset.values():
        yield asset_step(assets, table, checks)


def asset_step(assets: MirrorAssets, table: TableSettings, checks: Sequence[Check]) -> dg.AssetChecksDefinition:
    """Return the step that runs these checks of one asset.

    It continues when a check can't run or a blocking one fails; the step then fails at its end.
    """

    @dg.multi_asset_check(
        name=f"{step_name(assets.checked(checks[0].asset, table.name))}_checks",
        specs=[check.spec(assets, table.name) for check in checks],
        can_subset=True,
        required_resource_keys=resource_keys(assets, with_spark=any(check.needs_spark for check in checks)),
    )
    def step(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        names = {key.name for key in context.selected_asset_check_keys}
        selected = [check for check in checks if check.name in names]
        with_spark = any(check.needs_spark for check in selected)
        with failing():
            composed = project(assets, context.resources, with_spark=with_spark, lands=False)
        checked = CheckedTable(context.instance, assets, composed, table, runs_slices(context.run), with_spark)
        errors, failed = list[MirrorError](), list[dg.AssetCheckResult]()
        for check in selected:
            try:
                found = check.run(checked)
            except MirrorError as error:
                context.log.error(f"{check.name} could not run: {error}")  # noqa: TRY400 the message says all
                errors.append(error)
                continue
            if found is not None:
                result = check.result(assets, table.name, found)
                failed += [result] if is_blocking_failure(result) else []
                yield result
        if errors:
            raise failure(errors[0]) from errors[0]
        if failed:
            raise failure(checks_failed(failed))

    return step


def _staged_step(assets: MirrorAssets, table: TableSettings) -> dg.AssetChecksDefinition:
    """Return the step of the checks of staged slices.

    All of them run, whichever are selected, because a slice lands with the verdicts of all. When one fails, the step
    fails with the slice's error, and the checks of landing, which the run does not reach, are logged here.
    """
    checks = staged_checks(assets.config, table)

    @dg.multi_asset_check(
        name=f"{step_name(assets.key(AssetKind.CHANGES, table.name))}_checks",
        specs=[check.spec(assets, table.name) for check in checks],
        can_subset=True,
        required_resource_keys=resource_keys(assets),
    )
    def step(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        requested = set(requested_slices(context)) if runs_slices(context.run) else None
        with failing():
            composed = project(assets, context.resources)
            table_context = composed.table(table)
            staged = (one for one in staged_ahead(table_context) if requested is None or one.slice in requested)
            results, refused = check_slices(table_context, staged)
        selected = {key.name for key in context.selected_asset_check_keys}
        for check in checks:
            if check.name in selected:
                yield check.result(assets, table.name, results[check.name])
        if refused is not None:
            if requested is not None:
                log_checks(context.op_execution_context, assets, composed, table, AssetKind.LANDING)
            raise failure(refused, refused.key)

    return step


def is_blocking_failure(result: dg.AssetCheckResult | dg.AssetCheckEvaluation) -> bool:
    """Return whether the result fails the run."""
    is_error = result.severity is dg.AssetCheckSeverity.ERROR
    is_blocking = result.check_name in BLOCKING or (isinstance(result, dg.AssetCheckEvaluation) and result.blocking)
    return not result.passed and is_error and bool(is_blocking)


def checks_failed(failed: Sequence[dg.AssetCheckResult | dg.AssetCheckEvaluation]) -> StopError:
    """Return the error of a run in which blocking checks failed, with the next step of the first."""
    texts = [f"{x.check_name} of {'/'.join(x.asset_key.path if x.asset_key else ())}: {x.description}" for x in failed]
    step = (failed[0].metadata or {}).get("next_step")
    text = step.value if isinstance(step, dg.TextMetadataValue) else step
    return RUN_CHECKS_FAILED(
        count=count(len(texts), "blocking check"),
        failed=joined(texts),
        next_step=str(text) if text else None,
    )


def evaluations(
    checked: CheckedTable, kinds: Sequence[AssetKind], warn: Callable[[str], None]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield the results of the table's checks of these kinds now; `warn` takes a line for each that could not run.

    Of a check that needs Spark it is the newest recorded result.
    """
    assets, table = checked.assets, checked.table
    for check in checks_of(checked.composed.config, table):
        if check.asset not in kinds:
            continue
        if check.needs_spark:
            key = check.key(assets, table.name)
            again = RecordedChecks(checked.instance, [key]).again(key)
            if again is not None:
                yield again
            continue
        try:
            found = check.run(checked)
        except MirrorError as error:
            warn(f"{check.name} could not run: {error}")
        else:
            if found is not None:
                yield check.evaluation(assets, table.name, found)


def log_checks(
    context: dg.OpExecutionContext,
    assets: MirrorAssets,
    composed: Project,
    table: TableSettings,
    *kinds: AssetKind,
    mirror: Mirror | None = None,
) -> None:
    """Log the results of the table's checks of these kinds: who materializes an asset records its checks.

    `mirror` is one whose status is read once for several tables.
    """
    checked = CheckedTable(context.instance, assets, composed, table, is_incremental=True, shared_mirror=mirror)
    for found in evaluations(checked, kinds, context.log.warning):
        context.log_event(found)  # type: ignore[arg-type]  # it is recorded; the annotation lags


@contextmanager
def checks_on_failure(
    context: dg.OpExecutionContext, assets: MirrorAssets, composed: Project, table: TableSettings
) -> Iterator[None]:
    """Log the checks of source and landing when the block fails: the run then does not reach them.

    Dagster would show them as failed, though they never ran, and lag as it was when a run last succeeded.
    """
    try:
        yield
    except dg.Failure:
        log_checks(context, assets, composed, table, AssetKind.SOURCE, AssetKind.LANDING)
        raise


@dataclass(frozen=True)
class EvaluatedCheck:
    """The result of a table's check."""

    key: ProblemKey
    check: Check
    evaluation: dg.AssetCheckEvaluation


@dataclass(frozen=True)
class EvaluatedTable:
    """The results of a table's checks, and the materialization of its mirror if that has `changed`."""

    table: TableName
    results: Sequence[EvaluatedCheck]
    changed: dg.AssetMaterialization | None = None


@dataclass(frozen=True)
class TableChecks:
    """The checks of a project's tables, several tables at once; one that does not respond holds up no other.

    `names` selects checks; empty: all. Without `with_spark`, those that need Spark are left out. A scheduled run reads
    only landing files that are new. A check that can't run because a store does not respond is a warning in it, unless
    it is among those that have `failed_before`. `changed` finds the mirrors that have changed.
    """

    instance: dg.DagsterInstance
    assets: MirrorAssets
    composed: Project
    mirror: Mirror
    names: frozenset[str] = frozenset()
    with_spark: bool = False
    is_scheduled: bool = True
    failed_before: frozenset[ProblemKey] = frozenset()
    changed: ChangedMirrors | None = None
    _silent: SilentStores = field(default_factory=SilentStores)

    def selected(self, table: TableSettings) -> Sequence[Check]:
        """Return the table's checks that run."""
        return [
            check
            for check in checks_of(self.composed.config, table)
            if (not self.names or check.name in self.names) and (self.with_spark or not check.needs_spark)
        ]

    def run(self, table: TableSettings) -> EvaluatedTable:
        """Run the table's checks one after another, and return their results.

        A check that can't run has failed. If one cause fails several checks, the first reports it, and the others keep
        their last results.
        """
        checked = CheckedTable(
            self.instance, self.assets, self.composed, table, self.is_scheduled, self.with_spark, self.mirror
        )
        causes, results = set[str](), list[EvaluatedCheck]()
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
                found = self._unable(table, check, error)
            if found is not None:
                if not found.passed and "code" in found.metadata:
                    causes.add(str(found.metadata["code"]))
                record_check(str(table.name), check.name, passed=found.passed)
                results.append(self._evaluated(table, check, found))
        return EvaluatedTable(table.name, results, self._changed(checked))

    def _changed(self, checked: CheckedTable) -> dg.AssetMaterialization | None:
        """Return the event of a mirror that has changed; none where that can't be read: `replicating` says why."""
        if self.changed is None:
            return None
        try:
            with self._silent.asking(checked.table, source=False):
                return self.changed.event(checked.mirror.table(checked.table.name), checked.context.manifest())
        except MirrorError:
            return None

    def of_tables(self, tables: Sequence[TableSettings], warn: Callable[[str], None]) -> Iterator[EvaluatedTable]:
        """Yield the tables as their checks end; a table whose checks do not end in time has failed.

        `warn` takes a line for the log. Runs with Spark have no deadline.
        """
        pool = DaemonPool("checks", _WITH_SPARK_AT_ONCE if self.with_spark else _TABLES_AT_ONCE)
        limit = None if self.with_spark else LONGEST_SECONDS
        futures = {pool.submit(partial(self.run, table)): table for table in tables}
        try:
            for done in as_completed(futures, limit):
                yield done.result()
        except NotDone:
            waiting = [table for future, table in futures.items() if not future.done()]
            warn(f"{len(waiting)} tables are left alone: no answer within {LONGEST_SECONDS:.0f} s")
            for table in waiting:
                error, first = CHECKS_LATE(table=table.name, seconds=LONGEST_SECONDS), self.selected(table)[0]
                late = self._evaluated(table, first, self._unable(table, first, error))
                yield EvaluatedTable(table.name, [late])

    def _unable(self, table: TableSettings, check: Check, error: MirrorError) -> CheckResult:
        """Return the result of a check that can't run."""
        may_pass = isinstance(error, RetryError | UnknownOutcome) and check.problem(table) not in self.failed_before
        return CheckResult(
            check.name,
            (f"it could not be checked: {error.what}",),
            {**error.labels},
            is_warning=self.is_scheduled and may_pass,
            next_step=error.next_step,
        )

    def _evaluated(self, table: TableSettings, check: Check, found: CheckResult) -> EvaluatedCheck:
        return EvaluatedCheck(check.problem(table), check, check.evaluation(self.assets, table.name, found))
