"""Decides what a table needs now, from its log, its landing zone and recorded failures: no cursor, no JVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mirror_assets.config.setting_values import OnBreak
from mirror_assets.config.table_settings import Start
from mirror_assets.errors import ErrorCode, MirrorError, RebuildError, RetryError, SettingError, StopError
from mirror_assets.lakes.errors import LOCATION_UNKNOWN
from mirror_assets.landing.failures import FailureRecord
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import REBUILDS, TableName
from mirror_assets.landing.rebuild import RebuildRecord, RebuildStep, read_record
from mirror_assets.landing.steps import CONTROL_FILE_LIMIT, drive
from mirror_assets.pipeline.backoff import failure_pause, note_well, unresolved_failure
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TABLE_HELD, stop_error
from mirror_assets.pipeline.leases import holder_now
from mirror_assets.pipeline.plan import Boundaries, TablePlan, plan_table, recovered
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_listing import TipMark
from mirror_assets.source.ranges import EVERYTHING, Range
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.zones import PathMissing, Store

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


@dataclass(frozen=True)
class Rest:
    """Nothing to do now, and why. With a mark, that holds until the table changes.

    `pause` is how many seconds to leave the table alone, after failures.
    """

    why: str
    mark: QuietMark | None = None
    pause: float = 0.0


@dataclass(frozen=True)
class Rebuild:
    """Start a rebuild, or continue an interrupted one, and why."""

    why: str


@dataclass(frozen=True)
class Land:
    """Mirror the pending commits."""


Action = Rest | Rebuild | Land


@dataclass(frozen=True)
class ZoneState:
    """The table's control files in the landing zone."""

    rebuild: RebuildRecord | None
    rebuild_etag: str | None
    manifest: Manifest | None
    failure: FailureRecord | None

    @property
    def is_rebuilding(self) -> bool:
        """Whether a rebuild has begun and not ended."""
        return self.rebuild is not None and self.rebuild.is_running and not self.rebuild.is_drop

    @property
    def needs_rebuild(self) -> bool:
        """Whether the table's next run begins or continues a rebuild, which reads no old files."""
        return self.is_rebuilding or (self.failure is not None and self.failure.rebuild is not None)


def zone_state(context: TableContext) -> ZoneState:
    """Return the table's control files. Raises ManifestCorrupt, and what the store raises."""
    found = drive(read_record(context.name), context.store)
    rebuild, etag = found.record, found.content.etag if found.content else None
    manifest = context.manifest()
    return ZoneState(rebuild, etag, manifest, unresolved_failure(context, manifest, rebuild))


def next_action(context: TableContext, boundaries: Boundaries, now: float, *, is_complete: bool = True) -> Action:
    """Return the action that the table needs at `now` (seconds since 1970).

    Order: an interrupted rebuild, a rebuild that a failed run has requested, pending slices. Unless `is_complete`, a
    table without a next commit is not planned. A run that was killed while it held the table's lease is recorded.

    Raises TableHeld for a table that waits for a person to rebuild it, and what the log, the manifest, recovery and the
    check of settings against the source raise.
    """
    if busy := holder_now(context):
        return Rest(str(busy))
    zone = zone_state(context)
    if zone.failure is not None and (pause := failure_pause(zone.failure, now)) > 0:
        return Rest(f"{zone.failure.counted}; next one in {pause:.0f} s", pause=pause)
    if zone.rebuild is not None and zone.is_rebuilding:
        return Rebuild(zone.rebuild.step.value)
    try:
        if zone.failure is not None and zone.failure.rebuild is not None:
            return _rebuild(context, zone.failure.rebuild)
        return _pending(context, zone, boundaries, is_complete=is_complete)
    except RebuildError as error:
        return _rebuild(context, error.what)


def may_rebuild(context: TableContext, requested: Range = EVERYTHING) -> bool:
    """Return whether a break starts a rebuild without anyone's approval.

    Not in a run of a range, because a rebuild loads the newest version. Not before the first slice of a mirror that
    starts without a snapshot: its owner has chosen not to load the whole table.
    """
    if context.table.on_break is OnBreak.HOLD or not requested.is_everything:
        return False
    return context.table.start is Start.SNAPSHOT or context.manifest() is not None


Plan = Callable[[], TablePlan]
"""Returns the table's plan, which two checks share."""


def failed_check(error: MirrorError) -> str:
    """Return the check that reports this error of a table: `not_held`, `readable` or `not_failing`."""
    if isinstance(error, RebuildError) or error.row is TABLE_HELD:
        return NOT_HELD
    return READABLE if error.code in _UNREADABLE else NOT_FAILING


def check_readable(context: TableContext) -> CheckResult:
    """Run the check readable: can the source's log be listed? Raises errors that a retry may resolve."""
    try:
        context.log.earliest()
    except MirrorError as error:
        if failed_check(error) != READABLE:
            raise
        return CheckResult(READABLE, (error.what,), {"code": error.code.value}, next_step=error.next_step)
    return CheckResult(READABLE)


def check_not_held(context: TableContext, zone: ZoneState, plan: Plan) -> CheckResult:
    """Run the check not_held: does the table wait for a person to rebuild it? Raises what `next_action` raises."""
    passed = CheckResult(NOT_HELD)
    if zone.rebuild is not None and zone.rebuild.is_running:
        return passed
    why = zone.failure.rebuild if zone.failure is not None else None
    try:
        if why is None:
            _require_unbroken(context, plan())
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
            return CheckResult(NOT_FAILING, (error.what,), {"code": error.code.value}, next_step=error.next_step)
    if failure is None:
        return CheckResult(NOT_FAILING)
    what = f"{failure.counted}: {'the rebuild fails as well: ' if rebuild_fails else ''}{failure.reason}"
    step = _REPAIR_SOURCE if rebuild_fails and failure.code in _LOST_FILES else failure.next_step
    return CheckResult(NOT_FAILING, (what,), {"code": failure.code.value}, next_step=step)


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


def _rebuild(context: TableContext, why: str) -> Rebuild:
    if not may_rebuild(context):
        raise TABLE_HELD(table=str(context.name), why=why.removeprefix(f"{context.name}: "))
    return Rebuild(why)


def _pending(context: TableContext, zone: ZoneState, boundaries: Boundaries, *, is_complete: bool) -> Action:
    try:
        # A run plans the table anyway. After a failure, plan here: the plan may show that the table is on hold.
        if zone.failure is None and zone.manifest is not None:
            if context.log.has_commit(zone.manifest.covered + 1):
                return Land()
            if not is_complete:
                return Rest(f"{context.name}: version {zone.manifest.covered} is covered")
        current, registered = recovered(context, boundaries)
        # Read before the plan, so that a later commit differs from the mark.
        tip = context.log.tip_mark(current.manifest.covered) if current else None
        plan = plan_table(context, registered)
    except RetryError as error:
        if error.row is not LOCATION_UNKNOWN:
            raise
        return Land()  # a run has Spark, which can ask the catalog
    if plan.slices:
        return Land()
    _require_unbroken(context, plan)
    if zone.failure is not None:
        note_well(context, lambda _: None)  # if the record can't be deleted, the next poll retries
    why = f"{context.name}: version {plan.state.version} is covered"
    if current is None or tip is None:
        return Rest(why)
    # Without a mark if another run has landed something meanwhile, or the plan ends before the newest version.
    is_final = plan.manifest == current.manifest and plan.state.version == current.manifest.covered
    return Rest(why, QuietMark(current.etag, zone.rebuild_etag, tip) if is_final else None)


def _require_unbroken(context: TableContext, plan: TablePlan) -> None:
    """Raise the error of a break that comes before any slice."""
    if plan.stop is not None and not plan.slices:
        raise stop_error(context.name, plan.stop)


@dataclass(frozen=True)
class QuietMark:
    """The ETags of manifest and rebuild record, and the newest commit file, when nothing was left to do.

    `rebuild_etag` is None if no record existed.
    """

    manifest_etag: str
    rebuild_etag: str | None
    tip: TipMark


def is_quiet(mark: QuietMark, table: TableName, store: Store, log: DeltaLog) -> bool:
    """Return whether log, manifest and rebuild record are those of the mark, so that still nothing is left to do.

    Costs two requests to the landing zone and one listing of the log; four requests if the log has more than a page of
    files. Raises what the store and the log raise.
    """
    is_landed = _is_unchanged(store, table.manifest, mark.manifest_etag) and _is_unchanged(
        store, table.rebuild_record, mark.rebuild_etag
    )
    try:
        return is_landed and log.is_still_tip(mark.tip)
    except RetryError as error:
        if error.row is not LOCATION_UNKNOWN:
            raise
        return False


def _is_unchanged(store: Store, path: str, etag: str | None) -> bool:
    """Return whether the file still has the ETag; for None, whether it is still missing."""
    if etag is None:
        return store.head(path) is None
    try:
        return store.read_if_changed(path, etag, CONTROL_FILE_LIMIT) is None
    except PathMissing:
        return False
