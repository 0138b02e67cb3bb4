"""Dagster asset checks that wrap the checks of pipeline and verify, which the command line runs, too.

All checks of an asset are one step, of which a run selects some: with hundreds of tables, step definitions are most of
what loading a code location costs.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import TypeAlias

import dagster as dg

from mirror_assets.composition import Project, history_context, no_spark
from mirror_assets.config import Config, RetentionLimits, TableSettings
from mirror_assets.errors import ErrorCode, MirrorError, StopError
from mirror_assets.fabric.monitoring import WatchedMirror
from mirror_assets.history.history_context import HistoryContext
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import RANGE_START, Kind, MetadataItem, asset_key
from mirror_assets.orchestration.materialize import failing, failure
from mirror_assets.orchestration.resources import LandingZone, SourceTables, project
from mirror_assets.orchestration.settled_checks import settled
from mirror_assets.pipeline.check import BLOCKING_CHECKS
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.look_at_mirror import look_at_mirror
from mirror_assets.pipeline.next_action import (
    NOT_FAILING,
    NOT_HELD,
    READABLE,
    check_not_failing,
    check_not_held,
    check_readable,
)
from mirror_assets.pipeline.pending import PendingCommits, deadline_at, feed_deadline, pending_commits, table_lag
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.source.row_counts import feed_files
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.landed import full_continuity, incremental_continuity, metadata_unchanged
from mirror_assets.verify.next_steps import next_step
from mirror_assets.verify.reconciliation import ReconcileState, check_reconciled
from mirror_assets.verify.replicating import REPLICATING, check_replicating
from mirror_assets.verify.timeliness import Consequence, ReadDeadline, check_lag, check_retention

# In the metadata of a check that was left out because another one has failed: that one is told, this one is not.
SKIPPED = "skipped"


def check_result(
    asset: dg.AssetKey,
    result: CheckResult,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    pictures: Mapping[str, MetadataItem] | None = None,
) -> dg.AssetCheckResult:
    """Convert a CheckResult to an AssetCheckResult, with its figures and the `pictures` as metadata."""
    metadata: dict[str, MetadataItem] = {**result.figures, **(pictures or {})}
    if result.problems and (step := result.next_step or next_step(result.check)):
        metadata = {"next_step": step, **metadata}
    if result.not_looked_at:
        metadata = {SKIPPED: result.not_looked_at, **metadata}
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=result.check,
        passed=result.passed,
        # What was left out because another check has failed is no second failure, and has not passed either.
        severity=dg.AssetCheckSeverity.WARN if result.is_warning or result.not_looked_at else severity,
        description=result.message or result.note or None,
        metadata=metadata,
    )


def retention_result(
    asset: dg.AssetKey, deadline: ReadDeadline, limits: RetentionLimits, check: str = "retention"
) -> dg.AssetCheckResult:
    """Return an ERROR, or a WARN before it, when little time is left to read the next commit."""
    error = check_retention(deadline, limits.error_seconds, check)
    if not error.passed:
        return check_result(asset, error)
    return check_result(asset, check_retention(deadline, limits.warn_seconds, check), dg.AssetCheckSeverity.WARN)


# So many failed checks are told in an error's text.
_NAMED = 5
CheckRuns: TypeAlias = Mapping[str, Callable[[], dg.AssetCheckResult]]
Pending: TypeAlias = Callable[[], PendingCommits]


def pending_once(table_context: TableContext) -> Pending:
    """Return what reads source and manifest when it is called first: lag and retention look at the same moment."""
    return cache(partial(pending_commits, table_context))


def checks_step(
    asset: dg.AssetKey, specs: Sequence[dg.AssetCheckSpec]
) -> Callable[[Callable[..., Iterator[dg.AssetCheckResult]]], dg.AssetChecksDefinition]:
    """Return the decorator of the step that runs the asset's checks."""
    return dg.multi_asset_check(name=f"{'__'.join(asset.path)}_checks", specs=specs, can_subset=True)


def run_selected(context: dg.AssetCheckExecutionContext, checks: CheckRuns) -> Iterator[dg.AssetCheckResult]:
    """Run the selected checks, and go on when one can't run, or a blocking one fails; the step then fails in the end.

    Raises dagster.Failure.
    """
    selected = {key.name for key in context.selected_asset_check_keys}
    errors = list[MirrorError]()
    failed = list[dg.AssetCheckResult]()
    for name, run in checks.items():
        if name not in selected:
            continue
        try:
            result = run()
        except MirrorError as error:
            context.log.error(f"{name} could not run: {error}")  # noqa: TRY400 the message says all
            errors.append(error)
        else:
            if is_blocking_failure(result):
                failed.append(result)
            yield result
    if errors:
        raise failure(errors[0]) from errors[0]
    if failed:
        raise failure(checks_failed(failed))


# The checks that fail a run. Those of changes are in pipeline/check.py.
BLOCKING = frozenset(
    (
        *BLOCKING_CHECKS,
        "file_continuity",
        "metadata_unchanged",
        NOT_HELD,
        NOT_FAILING,
        READABLE,
        "reconciled",
        REPLICATING,
    )
)


def is_blocking_failure(result: dg.AssetCheckResult | dg.AssetCheckEvaluation) -> bool:
    """Return whether the result fails the run."""
    is_error = result.severity is dg.AssetCheckSeverity.ERROR
    return not result.passed and is_error and result.check_name in BLOCKING


def checks_failed(failed: Sequence[dg.AssetCheckResult | dg.AssetCheckEvaluation]) -> StopError:
    """Return the error of a run in which blocking checks failed: what they found, and what to do about the first."""
    found = [f"{x.check_name} of {'/'.join(x.asset_key.path if x.asset_key else ())}: {x.description}" for x in failed]
    more = [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
    many = "blocking check failed" if len(found) == 1 else "blocking checks failed"
    what = f"{len(found)} {many}: {'; '.join([*found[:_NAMED], *more])}."
    step = (failed[0].metadata or {}).get("next_step")  # of a check that could not run, the error's
    first = str(step.value) if isinstance(step, dg.TextMetadataValue) else "do what the message says."
    return StopError(what, first, code=ErrorCode.CHECKS_FAILED)


_PARTITION = "dagster/partition"


def is_slice_run(context: dg.AssetCheckExecutionContext) -> bool:
    """Return whether the run materializes slices; else it only runs checks."""
    return RANGE_START in context.run.tags or _PARTITION in context.run.tags


def source_specs(source: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return the checks of each source: readable, and retention, which warns and fails before a commit is vacuumed."""
    text = "How long the next commit can still be read."
    return [
        dg.AssetCheckSpec(READABLE, asset=source, blocking=True, description="The source's log can be read."),
        dg.AssetCheckSpec("retention", asset=source, description=text),
    ]


def readable_runs(table_context: TableContext) -> CheckRuns:
    """Return the check readable."""
    source = asset_key(Kind.SOURCE, table_context.name)
    return {READABLE: lambda: check_result(source, check_readable(table_context))}


def run_retention(table_context: TableContext, pending: Pending) -> dg.AssetCheckResult:
    """Run the check retention."""
    table = table_context.table
    deadline = feed_deadline(table_context, pending(), time.time())
    return retention_result(asset_key(Kind.SOURCE, table.name), deadline, table.retention)


LANDED_CHECKS = {
    "file_continuity": "Files in sequence, as committed. A run of slices checks new files, a run of checks all files.",
    "metadata_unchanged": "_metadata.json declares the first keys.",
    "lag": "How long the oldest uncovered commit has waited.",
    NOT_HELD: "The table does not wait for a person to have it rebuilt.",
    NOT_FAILING: "The newest run of the table has not failed.",
}


def landed_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """Return the checks file_continuity, metadata_unchanged, lag, not_held and not_failing."""
    zone = asset_key(Kind.LANDING, table.name)
    specs = [
        dg.AssetCheckSpec(name, asset=zone, blocking=name in BLOCKING, description=text)
        for name, text in LANDED_CHECKS.items()
    ]

    @checks_step(zone, specs)
    def landed(
        context: dg.AssetCheckExecutionContext, landing_zone: LandingZone, sources: SourceTables
    ) -> Iterator[dg.AssetCheckResult]:
        with failing():
            composed = project(config, landing_zone, sources)
        yield from run_selected(context, landed_runs(composed, table, is_incremental=is_slice_run(context)))

    return landed


def landed_runs(
    composed: Project, table: TableSettings, *, is_incremental: bool, pending: Pending | None = None
) -> CheckRuns:
    """Return the checks of landing_zone; an incremental file_continuity reads what is new since it last passed."""
    zone, table_context = asset_key(Kind.LANDING, table.name), composed.table(table)
    plan, pending = cache(partial(plan_table, table_context)), pending or pending_once(table_context)
    continuous = incremental_continuity if is_incremental else full_continuity
    store = composed.store
    return {
        "file_continuity": settled(
            table_context, lambda: check_result(zone, continuous(store, table.name, _applied(composed, table.name)))
        ),
        "metadata_unchanged": settled(
            table_context, lambda: check_result(zone, metadata_unchanged(store, table.name, table.mirror_keys))
        ),
        NOT_FAILING: lambda: check_result(zone, check_not_failing(table_context, plan)),
        NOT_HELD: lambda: check_result(zone, check_not_held(table_context, plan)),
        "lag": lambda: _lag_result(zone, table_context, pending),
    }


@contextmanager
def telling_landed_checks(context: dg.OpExecutionContext, composed: Project, table: TableSettings) -> Iterator[None]:
    """Log the checks of landing_zone when the block fails: the run does not reach them then."""
    try:
        yield
    except dg.Failure:
        log_landed_checks(context, composed, table)
        raise


def log_landed_checks(context: dg.OpExecutionContext, composed: Project, table: TableSettings) -> None:
    """Log the checks of landing_zone in a run that fails before it reaches them.

    Dagster would show them as failed, though they never ran, and lag as it was when a run last went well.
    """
    for found in landed_evaluations(composed, table, context.log.warning):
        context.log_event(found)  # type: ignore[arg-type]  # it is recorded; the annotation lags


def landed_evaluations(
    composed: Project, table: TableSettings, warn: Callable[[str], None]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield what the checks of landing_zone find now; `warn` is told of those that could not run."""
    for name, run in landed_runs(composed, table, is_incremental=True).items():
        try:
            result = run()
        except MirrorError as error:
            warn(f"{name} could not run: {error}")
        else:
            yield evaluation_of(result)


def evaluation_of(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """Return the result as an event, for runs that are no asset runs."""
    assert result.asset_key is not None  # noqa: S101 every result of ours names both
    assert result.check_name is not None  # noqa: S101
    return dg.AssetCheckEvaluation(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
        blocking=result.check_name in BLOCKING,
    )


def _lag_result(zone: dg.AssetKey, table_context: TableContext, pending: Pending) -> dg.AssetCheckResult:
    limits = table_context.table.lag
    lag = table_lag(pending(), time.time())
    error = check_lag(lag, limits.error_seconds)
    if not error.passed:
        return check_result(zone, error)
    return check_result(zone, check_lag(lag, limits.warn_seconds), dg.AssetCheckSeverity.WARN)


def _applied(composed: Project, table: TableName) -> int | None:
    """Return the number of the last applied file: 0 when the mirror has no table yet, None for Fabric."""
    if composed.config.mirror.fabric is not None:
        return None  # Fabric does not report file numbers
    status = composed.mirror().table(table)
    return status.applied_number if status else 0


def replicating_spec(mirror: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the check replicating: an ERROR when the mirror has stopped, a WARN when it is slow or warns."""
    text = "The replicator runs, mirrors this table, and files don't wait for long."
    return dg.AssetCheckSpec(REPLICATING, asset=mirror, blocking=True, description=text)


def run_replicating(table_context: TableContext, mirrored: WatchedMirror) -> dg.AssetCheckResult:
    """Run the check replicating."""
    limits = table_context.table.replication
    seen = look_at_mirror(table_context, mirrored, time.time())
    result = check_replicating(seen, limits.warn_seconds, limits.error_seconds)
    return check_result(asset_key(Kind.MIRROR, table_context.name), result)


_WAITING = (ReconcileState.PENDING, ReconcileState.MISSING, ReconcileState.LOADING)


def reconciled_spec(mirror: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the check reconciled: an ERROR on a difference, a WARN while files wait to be applied."""
    return dg.AssetCheckSpec("reconciled", asset=mirror, blocking=True, description="The mirror equals the source.")


def run_reconciled(composed: Project, table: TableSettings) -> dg.AssetCheckResult:
    """Run the check reconciled. Starts Spark."""
    result = reconcile_table(composed.table(table), composed.mirror())
    severity = dg.AssetCheckSeverity.WARN if result.state in _WAITING else dg.AssetCheckSeverity.ERROR
    return check_result(asset_key(Kind.MIRROR, table.name), check_reconciled(result), severity)


HISTORY_RETENTION = "history_retention"


def history_checks(config: Config, table: TableSettings) -> list[dg.AssetChecksDefinition]:
    """Return the check history_retention: a WARN, then an ERROR, before a commit is vacuumed that is not kept."""
    history = asset_key(Kind.HISTORY, table.name)

    @dg.asset_check(
        asset=history, name=HISTORY_RETENTION, description="How long the next commit to keep can still be read."
    )
    def history_retention(sources: SourceTables) -> dg.AssetCheckResult:
        with failing():
            return history_runs(config, table, sources)[HISTORY_RETENTION]()

    return [history_retention]


def history_runs(config: Config, table: TableSettings, sources: SourceTables) -> CheckRuns:
    """Return the check history_retention."""

    def run() -> dg.AssetCheckResult:
        context = history_context(config, table, sources.log(table.name), no_spark)
        deadline = history_deadline(context, time.time())
        return retention_result(asset_key(Kind.HISTORY, table.name), deadline, table.retention, HISTORY_RETENTION)

    return {HISTORY_RETENTION: run}


def history_deadline(context: HistoryContext, now: float) -> ReadDeadline:
    """Return until when the history can read its next commit, at `now` (seconds since 1970).

    Reads both logs and lists the files that the commit needs. A history that has not begun has no next commit.
    """
    tip, newest = context.source.state(), context.history.newest()
    times, next_read = context.source.times(tip), newest.last + 1 if newest else None
    return deadline_at(context.source, tip, times, next_read, feed_files, Consequence.LOST, now)
