"""The checks of a table that read no rows, and its health in a word: the worst of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial

from mirror_assets.errors import ErrorCode, MirrorError, RebuildError, SettingError, StopError
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import REBUILDS, TableName, landing_number
from mirror_assets.landing.rebuild import RebuildStep, read_rebuild
from mirror_assets.landing.steps import drive, read_control_file
from mirror_assets.monitoring import Mirror, MonitoredTable
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TABLE_HELD
from mirror_assets.pipeline.lag import PendingCommits, feed_deadline, table_lag
from mirror_assets.pipeline.leases import holder
from mirror_assets.pipeline.next_action import ZoneState, may_rebuild, require_unbroken, unresolved_failure, zone_state
from mirror_assets.pipeline.plan import TablePlan, plan_table
from mirror_assets.telemetry.record import record_mirrored
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.replicating import REPLICATING, Replication, check_replicating
from mirror_assets.verify.timeliness import check_lag, check_retention
from mirror_assets.zones import Store

NOT_HELD = "not_held"
NOT_FAILING = "not_failing"
READABLE = "readable"
# After these, a rebuild reads the same files.
_LOST_FILES = (ErrorCode.DATA_FILE_MISSING, ErrorCode.DATA_FILE_UNREADABLE)
_REPAIR_SOURCE = (
    "restore the file, or repair the source so that its newest version no longer has it. The next run continues "
    "automatically."
)
_REBUILD_STEP_SECONDS = 6 * 3600.0
_REBUILD_FAILS = 2
_UNREADABLE = (ErrorCode.SOURCE_NOT_DELTA, ErrorCode.SOURCE_UNREADABLE)
Plan = Callable[[], TablePlan]
"""Returns the table's plan, which two checks share."""


def failed_check(error: MirrorError) -> str:
    """Return the check that reports this error of a table: `not_held`, `readable` or `not_failing`."""
    if isinstance(error, RebuildError | TABLE_HELD.error):
        return NOT_HELD
    return READABLE if error.code in _UNREADABLE else NOT_FAILING


def check_readable(context: TableContext) -> CheckResult:
    """Run the check readable: can the source's log be listed? Raises errors that a retry may resolve."""
    try:
        context.log.earliest()
    except MirrorError as error:
        if failed_check(error) != READABLE:
            raise
        return CheckResult(READABLE, (error.what,), {**error.labels}, next_step=error.next_step)
    return CheckResult(READABLE)


def check_not_held(context: TableContext, zone: ZoneState, plan: Plan) -> CheckResult:
    """Run the check not_held: does the table wait for a person to rebuild it? Raises what `next_action` raises."""
    passed = CheckResult(NOT_HELD)
    if zone.rebuild is not None and zone.rebuild.is_running:
        return passed
    why = zone.failure.rebuild if zone.failure is not None else None
    try:
        if why is None:
            require_unbroken(context, plan())
    except RebuildError as error:
        why = error.what
    if why is None or may_rebuild(context):
        return passed
    held = TABLE_HELD(table=str(context.name), why=why.removeprefix(f"{context.name}: "))
    return CheckResult(NOT_HELD, (held.what,), next_step=held.next_step)


def check_not_failing(context: TableContext, zone: ZoneState, plan: Plan) -> CheckResult:
    """Run the check not_failing: has the table's newest run failed, or can it not be planned? A table on hold passes.

    A table that waits for a rebuild passes as well, until the rebuild itself has failed. A failure is void once the
    table has nothing left to do. If the source can't be read, the check is skipped: readable reports it.
    """
    failure, rebuild_fails = zone.failure, _rebuild_fails(context, zone)
    if failure is not None and failure.rebuild is not None and not rebuild_fails:
        failure = None
    try:
        planned = plan()
        if not planned.slices and planned.stop is None and not (zone.rebuild and zone.rebuild.is_running):
            failure = None
    except RebuildError:
        pass
    except MirrorError as error:
        if failed_check(error) == READABLE:
            return CheckResult(NOT_FAILING, skipped=f"skipped: {READABLE} failed")
        if failure is None and not isinstance(error, SettingError | StopError):
            raise
        if failure is None:
            return CheckResult(NOT_FAILING, (error.what,), {**error.labels}, next_step=error.next_step)
    if failure is None:
        return CheckResult(NOT_FAILING)
    what = f"{failure.counted}: {'the rebuild fails as well: ' if rebuild_fails else ''}{failure.reason}"
    step = _REPAIR_SOURCE if rebuild_fails and failure.code in _LOST_FILES else failure.next_step
    return CheckResult(NOT_FAILING, (what,), {"code": failure.code}, next_step=step)


def running_rebuild(context: TableContext, zone: ZoneState, now: float) -> RebuildStep | None:
    """Return the step of a rebuild that runs well at `now` (seconds since 1970), or None.

    One that has failed twice, or has completed no step for hours, doesn't run well: its table is late.
    """
    if zone.rebuild is None or not zone.is_rebuilding or _rebuild_fails(context, zone):
        return None
    step_began = _step_began(context)
    is_recent = step_began is None or now - step_began < _REBUILD_STEP_SECONDS
    return zone.rebuild.step if is_recent else None


def _rebuild_fails(context: TableContext, zone: ZoneState) -> bool:
    """Return whether the rebuild that the table needs has failed: the first failure may be its reason."""
    failure = zone.failure
    if failure is None or failure.count < _REBUILD_FAILS:
        return False
    if zone.is_rebuilding:
        step_began = _step_began(context)  # earlier failures may be the reason why a person has started it
        return step_began is None or failure.failed_ms / 1000 > step_began
    return failure.rebuild is not None and may_rebuild(context)


def _step_began(context: TableContext) -> float | None:
    """Return when the running rebuild began its step, by the store's clock in seconds since 1970; None if unknown."""
    records = context.store.list(REBUILDS)
    return next((info.modified for info in records if info.path == context.name.rebuild_record), None)


# The version of an applied file is searched in this many generations: a mirror that lags further is shown without one.
_READ_BACK = 20


def read_replication(context: TableContext, mirror: Mirror, now: float) -> Replication:
    """Return the state of the table's replication at `now` (seconds since 1970).

    An error of the mirror is part of the result. Raises what the landing zone's store and the manifest raise.
    """
    manifest = context.manifest()
    if manifest is None:
        return Replication(0, -1, _left_in_mirror(context, mirror))
    if manifest.next_number == 1:
        return Replication(0, manifest.covered)
    landed = manifest.next_number - 1
    try:
        database, table, days = mirror.database(), mirror.table(context.name), mirror.retention_days()
    except MirrorError as error:
        return Replication(landed, manifest.covered, refused=error)
    if table is not None:
        record_mirrored(str(context.name), table.state.value, table.sync_latency_seconds)
    # The mirror alone looks healthy while runs of the table fail.
    failure = unresolved_failure(context, manifest, drive(read_rebuild(context.name), context.store))
    return Replication(
        landed,
        manifest.covered,
        table,
        database,
        stuck_seconds=_stuck_seconds(context, manifest, table, now),
        version=mirrored_version(context.store, context.name, manifest, table),
        retention_days=days,
        stopped_before=f"{failure.counted}, see the check not_failing" if failure else None,
    )


def _left_in_mirror(context: TableContext, mirror: Mirror) -> MonitoredTable | None:
    """Return the mirror's table of a table that never landed; None if a rebuild or a drop explains it, or on an error.

    Only these two delete a table folder, and their record stays in the landing zone.
    """
    if drive(read_rebuild(context.name), context.store) is not None:
        return None
    try:
        return mirror.table(context.name)
    except MirrorError:
        return None


def check_replication(context: TableContext, mirror: Mirror, now: float) -> CheckResult:
    """Return the result of the check `replicating` at `now`. Raises what `read_replication` raises."""
    limits = context.table.replication
    return check_replicating(read_replication(context, mirror, now), limits.warn_seconds, limits.error_seconds)


def mirrored_version(store: Store, name: TableName, manifest: Manifest, table: MonitoredTable | None) -> int | None:
    """Return the source's version that the mirror has; None if it is unknown. Raises ManifestCorrupt.

    Reads the generations before the manifest's while files wait, a few at most. Fabric reports no file numbers: there
    the version is known once everything is applied.
    """
    if table is None:
        return None
    if table.has_applied(manifest):
        return manifest.covered if manifest.loading is None else None
    if table.applied_number is None:
        return None
    for generation in range(manifest.generation - 1, max(0, manifest.generation - 1 - _READ_BACK), -1):
        kept = drive(read_control_file(Manifest, name.history(manifest.epoch, generation)), store).record
        if kept is None:
            return None
        if kept.next_number - 1 <= table.applied_number:
            return kept.covered if kept.loading is None else None
    return None


def _stuck_seconds(context: TableContext, manifest: Manifest, table: MonitoredTable | None, now: float) -> float:
    """Return how long a file has waited while nothing was applied; 0 where none waits.

    A table that applies its files is not stuck, however many wait: the time counts from the last applied file.
    """
    if table is not None and table.has_applied(manifest):
        return 0.0
    found = context.store.list(context.name.folder)
    waiting = sorted((number, info) for info in found if (number := landing_number(info.name)))
    if table is not None and table.applied_number is not None:
        waiting = [one for one in waiting if one[0] > table.applied_number]
    elif table is not None:
        # Fabric reports no file numbers, and keeps the last file, processed or not: the last ones wait.
        waiting = waiting[-max(1, table.waiting_files) :]
    since = [info.modified for _, info in waiting if info.modified is not None][:1]
    if table is not None and table.last_sync is not None:
        since.append(table.last_sync.timestamp())
    return max(0.0, now - max(since)) if since and waiting else 0.0


class Urgency(str, Enum):
    """How soon a person should act, the most urgent first."""

    NOW = "now"
    SOON = "soon"
    NOT = "not"

    @property
    def rank(self) -> int:
        """Its place in that order."""
        return list(Urgency).index(self)


@dataclass(frozen=True)
class TableHealth:
    """The word, such as `held`, the reason (empty if healthy), and how soon a person should act."""

    word: str
    why: str
    urgency: Urgency


# A run that begins now may still start its Spark.
_START_SECONDS = 60.0
_WORDS = {
    NOT_HELD: ("held", "held"),
    NOT_FAILING: ("failing", "failing"),
    REPLICATING: ("mirror stopped", "mirror warns"),
    "retention": ("expiring", "expiring"),
    "lag": ("late", "late"),
}


def table_health(
    context: TableContext, pending: PendingCommits, seen: Replication | None, now: float, *, has_runs: bool
) -> TableHealth:
    """Return the table's health at `now` (seconds since 1970); `seen` is None if the mirror could not be read.

    `has_runs`: a run mirrors tables now. A cause comes before its consequence: a table on hold is also late. Raises
    what the log and the store raise.
    """
    lag, idle = table_lag(pending, now), ""
    if lag.seconds > _START_SECONDS and not has_runs and holder(context.store, context.name) is None:
        idle = "no run mirrors it: switch the sensor `mirror` on, or start `mirror-assets run`"
    warned: TableHealth | None = None
    # The checks after the first error are not run: they may not even be able to.
    for result in _results(context, pending, seen, now):
        if result.passed:
            continue
        urgent, warning = _WORDS[result.check]
        why = f"{result.advice}; {idle}" if idle and result.check == "lag" else result.advice
        if not result.is_warning:
            return TableHealth(urgent, why, Urgency.NOW)
        warned = warned or TableHealth(warning, why, Urgency.SOON)
    if warned is not None:
        return warned
    if idle:
        return TableHealth("waiting", idle, Urgency.NOT)
    if pending.waits:
        return TableHealth("catching up", "", Urgency.NOT)
    is_applied = seen is None or seen.version is None or seen.version >= pending.covered
    return TableHealth("up to date" if is_applied else "applying", "", Urgency.NOT)


def _results(
    context: TableContext, pending: PendingCommits, seen: Replication | None, now: float
) -> Iterator[CheckResult]:
    """Yield the results, causes first."""
    table, lag, deadline = context.table, table_lag(pending, now), feed_deadline(context, pending, now)
    plan = cache(partial(plan_table, context, at_most=1))
    zone = zone_state(context)
    yield check_not_failing(context, zone, plan)
    yield check_not_held(context, zone, plan)
    if seen is not None:
        yield check_replicating(seen, table.replication.warn_seconds, table.replication.error_seconds)
    yield check_retention(deadline, table.retention.error_seconds)
    yield check_lag(lag, table.lag.error_seconds)
    yield replace(check_retention(deadline, table.retention.warn_seconds), is_warning=True)
    yield replace(check_lag(lag, table.lag.warn_seconds), is_warning=True)
