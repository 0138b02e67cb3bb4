"""Decides what a table needs now, from its log, its landing zone and recorded failures: no cursor, no JVM.

A failed run is recorded in the landing zone, and every scheduler waits before the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mirror_assets.config.setting_values import OnBreak
from mirror_assets.config.table_settings import Start
from mirror_assets.errors import ErrorCode, MirrorError, RebuildError
from mirror_assets.lakes.errors import LOCATION_UNKNOWN
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.landing.rebuild import RebuildRecord, read_record
from mirror_assets.landing.run_records import FailureRecord, clear_failure, read_failure, record_failure
from mirror_assets.landing.steps import CONTROL_FILE_LIMIT, drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TABLE_BUSY, TABLE_HELD, stop_error
from mirror_assets.pipeline.leases import holder_now
from mirror_assets.pipeline.liveness import now_ms
from mirror_assets.pipeline.plan import Boundaries, TablePlan, plan_table, recovered
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_listing import TipMark
from mirror_assets.source.ranges import EVERYTHING, Range
from mirror_assets.telemetry.record import count_failure
from mirror_assets.zones import PathMissing, Store


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

    Raises TABLE_HELD for a table that waits for a person to rebuild it, and what the log, the manifest, recovery and
    the check of settings against the source raise.
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
        plan = plan_table(context, registered, at_most=1)
    except LOCATION_UNKNOWN.error:
        return Land()  # a run has Spark, which can ask the catalog
    if plan.slices:
        return Land()
    require_unbroken(context, plan)
    if zone.failure is not None:
        note_well(context, lambda _: None)  # if the record can't be deleted, the next poll retries
    why = f"{context.name}: version {plan.state.version} is covered"
    if current is None or tip is None:
        return Rest(why)
    # Without a mark if another run has landed something meanwhile, or the plan ends before the newest version.
    is_final = plan.manifest == current.manifest and plan.state.version == current.manifest.covered
    return Rest(why, QuietMark(current.etag, zone.rebuild_etag, tip) if is_final else None)


def require_unbroken(context: TableContext, plan: TablePlan) -> None:
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
    except LOCATION_UNKNOWN.error:
        return False


def _is_unchanged(store: Store, path: str, etag: str | None) -> bool:
    """Return whether the file still has the ETag; for None, whether it is still missing."""
    if etag is None:
        return store.head(path) is None
    try:
        return store.read_if_changed(path, etag, CONTROL_FILE_LIMIT) is None
    except PathMissing:
        return False


_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 30, 3600


def note_failure(
    context: TableContext, error: MirrorError, report: Callable[[str], None], key: SliceKey | None = None
) -> bool:
    """Record that a run failed, and at which slice, so that every scheduler waits before it tries again.

    Records a needed rebuild when only reading the source's rows shows it: a break in the log is found again anyway.
    Returns False if the landing zone can't keep the record; that is reported, and is not a second failure.
    """
    if isinstance(error, TABLE_BUSY.error):
        return True
    count_failure(str(context.name), error.code.value)
    rebuild = error.what if isinstance(error, RebuildError) and error.needs_reading else None
    try:
        record_failure(context.store, context.name, error.code, str(error), now_ms(), key, rebuild)
    except MirrorError as unable:
        report(f"{context.name}: the failure can't be recorded: {unable.what}")
        return False
    return True


def note_well(context: TableContext, report: Callable[[str], None]) -> None:
    """Delete the record of failures: a complete plan has found nothing to do. A store that can't is reported."""
    try:
        clear_failure(context.store, context.name)
    except MirrorError as unable:
        report(f"{context.name}: the record of its failures can't be deleted: {unable.what}")


def unresolved_failure(
    context: TableContext, manifest: Manifest | None, rebuild: RebuildRecord | None
) -> FailureRecord | None:
    """Return the recorded failures since the table was last well, or None."""
    found = read_failure(context.store, context.name)
    return found if found is not None and found.stands(manifest, rebuild) else None


def failure_pause(record: FailureRecord, now: float) -> float:
    """Return the seconds to wait at `now` (seconds since 1970) until the next run, after the failures of the record.

    A run that was killed may have worked on many tables: the first time, none of them has to wait.
    """
    return pause_left(record.count - (record.code == ErrorCode.RUN_KILLED), record.failed_ms / 1000, now)


def pause_left(failures: int, ended: float, now: float) -> float:
    """Return the seconds to wait until the next run after this many failures.

    The pause doubles with each failure, from 30 seconds to an hour. `ended` is the end of the last failed run and `now`
    the time, in seconds since 1970; an `ended` in the future makes the pause no longer.
    """
    if failures <= 0:
        return 0.0
    # 2 ** 7 times the first pause is more than the longest.
    pause: float = min(_FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 7), _LONGEST_PAUSE_SECONDS)
    return min(pause, max(0.0, ended + pause - now))
