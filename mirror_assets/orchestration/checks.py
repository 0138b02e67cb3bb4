"""All asset checks, in the order in which they run: first those whose errors keep others from running."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.feature import features
from mirror_assets.orchestration.asset_check import KEEP_FILES, Check, CheckedTable, by_limits
from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.errors import CHECK_UNKNOWN
from mirror_assets.orchestration.settled_checks import settled
from mirror_assets.orchestration.staged_checks import STAGED_CHECKS, own_staged_checks
from mirror_assets.pipeline.next_action import (
    NOT_FAILING,
    NOT_HELD,
    READABLE,
    check_not_failing,
    check_not_held,
    check_readable,
    running_rebuild,
)
from mirror_assets.pipeline.pending import feed_deadline, table_lag
from mirror_assets.pipeline.reconcile_table import reconcile_in_turn
from mirror_assets.pipeline.replication import check_replication
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.landed import file_continuity, incremental_continuity, metadata_unchanged
from mirror_assets.verify.reconciliation import ReconcileState, check_reconciled
from mirror_assets.verify.replicating import REPLICATING
from mirror_assets.verify.timeliness import check_lag, check_retention

RECONCILED = "reconciled"
_WAITING = (ReconcileState.PENDING, ReconcileState.MISSING, ReconcileState.LOADING, ReconcileState.OUTDATED)


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
        next_step="restore the file that the message names, or rebuild the table.",
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
    """Return the table's checks, in order."""
    own = (check for feature in config.own_features for check in feature.checks())
    return [check for check in (*CHECKS, *own_staged_checks(config, table), *own) if check.applies(config, table)]


def require_known(config: Config, names: Sequence[str]) -> frozenset[str]:
    """Return the names. Raises SettingError for an unknown check: a run without checks would look successful."""
    if more := frozenset(names).difference(CHECK_NAMES):
        known = {*CHECK_NAMES, *(check.name for table in config.all_tables() for check in checks_of(config, table))}
        for name in sorted(more - known):
            raise CHECK_UNKNOWN(name=name, known=sorted(known))
    return frozenset(names)
