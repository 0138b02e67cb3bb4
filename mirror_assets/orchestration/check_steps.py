"""The steps that run asset checks in Dagster's asset runs: one for each asset, of which a run selects some checks.

One step each, because step definitions are most of what a code location with hundreds of tables costs to load.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import MirrorError, StopError
from mirror_assets.monitoring import Mirror
from mirror_assets.orchestration.asset_check import Check, CheckedTable
from mirror_assets.orchestration.asset_names import RANGE_START, AssetKind, step_name
from mirror_assets.orchestration.checks import BLOCKING, checks_of
from mirror_assets.orchestration.errors import RUN_CHECKS_FAILED
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.partitions import parse_slices
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.resources import project, resource_keys
from mirror_assets.orchestration.runs import failing, failure
from mirror_assets.orchestration.staged_checks import check_slices, staged_checks
from mirror_assets.orchestration.units import count, joined
from mirror_assets.pipeline.stage_range import staged_ahead

_PARTITION = "dagster/partition"


def check_definitions(assets: MirrorAssets, table: TableSettings) -> Iterator[dg.AssetChecksDefinition]:
    """Yield the steps of the table's checks."""
    yield _staged_step(assets, table)
    by_asset: dict[dg.AssetKey, list[Check]] = {}
    for check in checks_of(assets.config, table):
        if check.asset is not AssetKind.CHANGES:
            by_asset.setdefault(assets.checked(check.asset, table.name), []).append(check)
    for checks in by_asset.values():
        yield asset_step(assets, table, checks)


def asset_step(assets: MirrorAssets, table: TableSettings, checks: Sequence[Check]) -> dg.AssetChecksDefinition:
    """Return the step that runs these checks of one asset.

    It continues when a check can't run or a blocking one fails; the step then fails at its end.
    """

    @dg.multi_asset_check(
        name=_checks_step(assets.checked(checks[0].asset, table.name)),
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
        checked = CheckedTable(context.instance, assets, composed, table, _runs_slices(context), with_spark)
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
        name=_checks_step(assets.key(AssetKind.CHANGES, table.name)),
        specs=[check.spec(assets, table.name) for check in checks],
        can_subset=True,
        required_resource_keys=resource_keys(assets),
    )
    def step(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        requested = set(parse_slices(context.partition_keys)) if _runs_slices(context) else None
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


def _checks_step(asset: dg.AssetKey) -> str:
    return f"{step_name(asset)}_checks"


def _runs_slices(context: dg.AssetCheckExecutionContext) -> bool:
    """Return whether the run materializes slices; else it only runs checks."""
    return RANGE_START in context.run.tags or _PARTITION in context.run.tags


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
