"""All asset checks, in the order in which they run: first those whose errors keep others from running."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import dagster as dg

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.feature import features, slice_checks
from mirror_assets.landing.format import Manifest, SliceRecord
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.asset_check import KEEP_FILES, Check, CheckedTable, by_limits
from mirror_assets.orchestration.errors import CHECK_UNKNOWN
from mirror_assets.orchestration.partitions import as_slice
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS, refusal, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.lag import feed_deadline, table_lag
from mirror_assets.pipeline.land_slice import staged_ahead
from mirror_assets.pipeline.leases import holder
from mirror_assets.pipeline.reconcile_table import reconcile_in_turn
from mirror_assets.pipeline.table_health import (
    NOT_FAILING,
    NOT_HELD,
    READABLE,
    check_not_failing,
    check_not_held,
    check_readable,
    check_replication,
    running_rebuild,
)
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.landed import RESTORE, file_continuity, incremental_continuity, metadata_unchanged
from mirror_assets.verify.reconciliation import ReconcileState, check_reconciled
from mirror_assets.verify.replicating import REPLICATING
from mirror_assets.verify.timeliness import check_lag, check_retention

RECONCILED = "reconciled"
_WAITING = (ReconcileState.PENDING, ReconcileState.MISSING, ReconcileState.LOADING, ReconcileState.OUTDATED)
# A half-published slice changes within seconds; damage persists.
_PAUSES = (2.0, 5.0)
NOTHING_STAGED = "no staged slice waits: each was checked before it landed"


def _file_continuity(checked: CheckedTable) -> CheckResult:
    def run() -> CheckResult:
        applied = None  # Fabric does not report file numbers
        if checked.composed.config.mirror_place is None:
            status = checked.composed.mirror().table(checked.table.name)
            applied = status.applied_number if status else 0
        continuity = incremental_continuity if checked.is_incremental else file_continuity
        return continuity(checked.composed.store, checked.table.name, applied)

    return settled(checked.context, run)


def _metadata_unchanged(checked: CheckedTable) -> CheckResult:
    table = checked.table
    return settled(checked.context, lambda: metadata_unchanged(checked.composed.store, table.name, table.mirror_keys))


def _lag(checked: CheckedTable) -> CheckResult:
    step = running_rebuild(checked.context, checked.zone, time.time())
    if step is not None:
        return CheckResult("lag", skipped=f"skipped: a rebuild runs ({step.value})")
    return by_limits(partial(check_lag, table_lag(checked.pending, time.time())), checked.table.lag)


def _retention(checked: CheckedTable) -> CheckResult:
    if checked.zone.needs_rebuild:
        return CheckResult("retention", skipped="skipped: the table waits for a rebuild")
    deadline = feed_deadline(checked.context, checked.pending, time.time())
    return by_limits(partial(check_retention, deadline, check="retention"), checked.table.retention)


def _reconciled(checked: CheckedTable) -> CheckResult:
    def run() -> CheckResult:
        found = reconcile_in_turn(checked.context, checked.composed.mirror(), scheduled=checked.is_incremental)
        return replace(check_reconciled(found), is_warning=found.state in _WAITING)

    return settled(checked.context, run)


def settled(
    context: TableContext, run: Callable[[], CheckResult], sleep: Callable[[float], None] = time.sleep
) -> CheckResult:
    """Run the check again while it fails and a run works on the table.

    Returns when it passes, when no run worked on the table meanwhile, or when it failed twice with the same message,
    after a pause. Raises what the check and the store raise.
    """
    message: str | None = None
    for pause in (*_PAUSES, 0.0):
        before = _manifest_etag(context)
        result = run()
        is_idle = holder(context.store, context.name) is None and _manifest_etag(context) == before
        if result.passed or is_idle or result.message == message:
            break
        message = result.message
        sleep(pause)
    return result


def _manifest_etag(context: TableContext) -> str | None:
    current = drive(read_manifest(context.name), context.store)
    return current.etag if current else None


def _staged_check(name: str, checked: CheckedTable) -> CheckResult | None:
    """Check the staged slices; without Spark, only resolve a failure whose slice has landed since, or can't any more.

    A run that ended without a result counts as a failure. Returns None if no slice is staged and none is recorded.
    """
    if checked.with_spark and checked.share(_staged):
        return checked.share(_results)[name]
    key = dg.AssetCheckKey(checked.assets.key(AssetKind.CHANGES, checked.table.name), name)
    recorded = checked.share(_recorded)
    if recorded.is_abandoned(key) and not checked.share(_staged):
        return CheckResult(name, note=NOTHING_STAGED)
    last = recorded.last(key)
    if last is None or last.passed or checked.share(_staged):
        return None
    return CheckResult(name, note=NOTHING_STAGED) if _is_past(last, checked.context.manifest()) else None


def _recorded(checked: CheckedTable) -> RecordedChecks:
    checks = staged_checks(checked.composed.config, checked.table)
    keys = [check.key(checked.assets, checked.table.name) for check in checks]
    return RecordedChecks(checked.instance, keys)


def _staged(checked: CheckedTable) -> tuple[SliceRecord, ...]:
    return staged_ahead(checked.context)


def _results(checked: CheckedTable) -> dict[str, CheckResult]:
    return check_slices(checked.context, checked.share(_staged))[0]


def _is_past(failed: dg.AssetCheckEvaluation, manifest: Manifest | None) -> bool:
    """Return whether the slice that failed has landed since, or can't land any more."""
    named = failed.metadata.get("last_slice") or failed.metadata.get("slice")
    if not isinstance(named, dg.TextMetadataValue):
        return True
    key = as_slice(str(named.value))
    return manifest is not None and (key is None or manifest.epoch > key.epoch or manifest.covered >= key.last)


def check_slices(
    context: TableContext, staged: Iterable[SliceRecord]
) -> tuple[dict[str, CheckResult], ChecksFailed | None]:
    """Check these staged slices, up to the first that may not land.

    Returns one result per check, which names the slices, and the error of the slice that may not land.
    """
    checked: list[tuple[str, tuple[CheckResult, ...]]] = []
    refused: ChecksFailed | None = None
    for record in staged:
        _, results = run_checks(context, record)
        checked.append((str(record.slice), results))
        refused = refusal(context, record, results)
        if refused is not None:
            break
    names = [check.name for check in staged_checks(context.config, context.table)]
    return {name: merged(name, checked) for name in names}, refused


def merged(name: str, checked: Sequence[tuple[str, Sequence[CheckResult]]]) -> CheckResult:
    """Return one result for several slices: texts name their slice, statistics are added, the slices are named."""
    results = [(key, found) for key, results in checked for found in results if found.check == name]
    if not results:
        return CheckResult(name, note=NOTHING_STAGED)
    first, last = results[0][0], results[-1][0]
    # A number would be plotted, and most runs of slices have one slice.
    metadata: dict[str, int | float | str] = {"slice": first}
    if len(results) > 1:
        metadata = {"slices": len(results), "first_slice": first, "last_slice": last}
    for _, result in results:
        for figure, value in result.metadata.items():
            sum_so_far = metadata.get(figure, 0)
            if isinstance(value, int | float) and isinstance(sum_so_far, int | float):
                metadata[figure] = sum_so_far + value
            elif isinstance(value, str):
                metadata.setdefault(figure, value)
    problems = tuple(f"slice {key}: {problem}" for key, result in results for problem in result.problems)
    skipped = "; ".join(f"slice {key}: {result.skipped}" for key, result in results if result.skipped)
    step = next((result.next_step for _, result in results if result.problems), "")
    warning = "; ".join(f"slice {key}: {result.warning}" for key, result in results if result.warning)
    is_warning = bool(problems) and not any(result.is_refusal for _, result in results)
    return CheckResult(
        name, problems, metadata, is_warning=is_warning, skipped=skipped, next_step=step, warning=warning
    )


STAGED_CHECKS = tuple(
    Check(name, AssetKind.CHANGES, description, partial(_staged_check, name), blocking=True)
    for name, description in BLOCKING_CHECKS.items()
)
CHECKS: tuple[Check, ...] = (
    Check(
        READABLE,
        AssetKind.SOURCE,
        "The source's log can be read.",
        lambda checked: check_readable(checked.context),
        blocking=True,
        reads_zone=False,
    ),
    Check(
        "file_continuity",
        AssetKind.LANDING,
        "Files in sequence, as committed. A run of slices checks new files, a run of checks all files.",
        _file_continuity,
        blocking=True,
        reads_source=False,
        next_step=RESTORE,
    ),
    Check(
        "metadata_unchanged",
        AssetKind.LANDING,
        "_metadata.json declares the first keys.",
        _metadata_unchanged,
        blocking=True,
        reads_source=False,
        next_step="restore _metadata.json; to change keys, rebuild the table.",
    ),
    Check(
        NOT_FAILING,
        AssetKind.LANDING,
        "The newest run of the table has not failed.",
        lambda checked: check_not_failing(checked.context, checked.zone, lambda: checked.plan),
        blocking=True,
        next_step="the next run retries automatically.",
    ),
    Check(
        NOT_HELD,
        AssetKind.LANDING,
        "The table does not wait for a person to rebuild it.",
        lambda checked: check_not_held(checked.context, checked.zone, lambda: checked.plan),
        blocking=True,
    ),
    Check(
        "lag",
        AssetKind.LANDING,
        "How long the oldest uncovered commit has waited.",
        _lag,
        next_step="see the checks not_held and not_failing; check that the sensor `mirror` is on and its run lasts.",
        follows=(READABLE, NOT_FAILING, NOT_HELD),
        may_pass=True,
    ),
    Check(
        "retention",
        AssetKind.SOURCE,
        "How long the next commit can still be read.",
        _retention,
        next_step=KEEP_FILES,
        follows=(NOT_HELD,),
    ),
    *STAGED_CHECKS,
    Check(
        REPLICATING,
        AssetKind.MIRROR,
        "The replicator runs, mirrors this table, and applies files without a long delay.",
        lambda checked: check_replication(checked.context, checked.mirror, time.time()),
        blocking=True,
        reads_source=False,
        next_step="do what the message says; `mirror-assets fabric status` shows what Fabric reports.",
    ),
    Check(RECONCILED, AssetKind.MIRROR, "The mirror equals the source.", _reconciled, blocking=True, needs_spark=True),
    *(check for feature in features() for check in feature.checks()),
)
CHECK_NAMES = tuple(sorted({check.name for check in CHECKS}))
# A failure of these fails the run.
BLOCKING = frozenset(check.name for check in CHECKS if check.blocking)


def checks_of(config: Config, table: TableSettings) -> Sequence[Check]:
    """Return the table's checks, in order: those of the mirror, then the project's own."""
    own_staged = (
        Check(
            check.name,
            AssetKind.CHANGES,
            check.description,
            partial(_staged_check, check.name),
            blocking=check.blocking,
            section="your-own-checks",
        )
        for check in slice_checks(config, table)
    )
    own = (check for feature in config.own_features for check in feature.checks())
    return [check for check in (*CHECKS, *own_staged, *own) if check.applies(config, table)]


def staged_checks(config: Config, table: TableSettings) -> list[Check]:
    """Return the checks of the table's staged slices, the project's own among them."""
    return [check for check in checks_of(config, table) if check.asset == AssetKind.CHANGES]


def require_known(config: Config, names: Sequence[str]) -> frozenset[str]:
    """Return the names. Raises SettingError for an unknown check: a run without checks would look successful."""
    if more := frozenset(names).difference(CHECK_NAMES):
        known = {*CHECK_NAMES, *(check.name for table in config.all_tables() for check in checks_of(config, table))}
        for name in sorted(more - known):
            raise CHECK_UNKNOWN(name=name, known=sorted(known))
    return frozenset(names)
