"""Decides what a table needs now, from its log, its landing zone and recorded failures: no cursor, no JVM.

A scheduler (Dagster's sensor) asks, and starts the run that the answer names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mirror_assets.errors import RebuildError
from mirror_assets.landing.failures import FailureRecord
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import Progress, RebuildRecord, first_epoch, progress_of, read_record
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import VersionedManifest, read_manifest
from mirror_assets.landing.steps import CONTROL_FILE_LIMIT, drive
from mirror_assets.pipeline.backoff import pause_left, unresolved_failure
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TableHeld, stop_error
from mirror_assets.pipeline.plan import TablePlan, may_rebuild, plan_table, slice_key
from mirror_assets.pipeline.table_lease import holder
from mirror_assets.source.log import SourceLog
from mirror_assets.source.log_listing import TipMark
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.storage import PathMissing, Store
from mirror_assets.verify.check_result import CheckResult

NOT_HELD = "not_held"


@dataclass(frozen=True)
class Rest:
    """Nothing to do now, and why. The mark is there if that holds until the table changes, not only for some time."""

    why: str
    mark: QuietMark | None = None


@dataclass(frozen=True)
class Rebuild:
    """Begin a rebuild, or continue an interrupted one."""

    progress: Progress


@dataclass(frozen=True)
class Land:
    """Mirror these slices of the plan in one run."""

    progress: Progress
    plan: TablePlan
    slices: tuple[PlannedSlice, ...]


Action = Rest | Rebuild | Land


@dataclass(frozen=True)
class Crashes:
    """How many runs in a row failed since the table last landed something, as the scheduler knows.

    A run that was killed is recorded nowhere else. `ended` is the end of the last one, in seconds since 1970.
    """

    count: int = 0
    ended: float = 0.0


@dataclass(frozen=True)
class Scheduler:
    """What only the scheduler knows: runs that crashed, and the partitions that it has registered.

    `crashes` takes the table's progress. `boundaries` takes an epoch and its covered version, and returns the last
    versions of registered slices behind it.
    """

    crashes: Callable[[Progress], Crashes]
    boundaries: Callable[[int, int], frozenset[int]]


@dataclass(frozen=True)
class _Known:
    """The table's state in the landing zone."""

    rebuild: RebuildRecord | None
    rebuild_etag: str | None
    manifest: Manifest | None
    failure: FailureRecord | None

    @property
    def progress(self) -> Progress:
        return progress_of(self.manifest, self.rebuild)


def next_action(context: TableContext, scheduler: Scheduler, now: float) -> Action:
    """Return what the table needs at `now` (seconds since 1970).

    An interrupted rebuild comes first, then a rebuild that a failed run has asked for, then pending slices. Raises
    TableHeld for a table that waits for a person to rebuild it, and what the log, the manifest, recovery and the check
    of settings against the source raise.
    """
    busy = holder(context.store, context.name)
    if busy is not None:
        return Rest(str(busy))
    known = _look(context)
    failures, pause = _pause(known, scheduler, now)
    if pause > 0:
        return Rest(f"{failures} runs of {context.name} failed; next one in {pause:.0f} s")
    if known.rebuild is not None and known.rebuild.is_running and not known.rebuild.is_drop:
        return Rebuild(known.progress)
    try:
        if known.failure is not None and known.failure.rebuild is not None:
            return _rebuild(context, known, known.failure.rebuild)
        return _pending(context, known, scheduler)
    except RebuildError as error:
        return _rebuild(context, known, error.what)


def check_not_held(context: TableContext) -> CheckResult:
    """Run the check not_held: does the table wait for a person to rebuild it? Raises what `next_action` raises."""
    why = _held(context)
    return CheckResult(NOT_HELD, (why,) if why else ())


def _held(context: TableContext) -> str | None:
    known = _look(context)
    if known.rebuild is not None and known.rebuild.is_running:
        return None
    try:
        if known.failure is not None and known.failure.rebuild is not None:
            _rebuild(context, known, known.failure.rebuild)
        else:
            _require_unbroken(context, plan_table(context))
    except TableHeld as error:
        return str(error)
    except RebuildError as error:
        return None if may_rebuild(context) else str(TableHeld(str(context.name), error.what))
    return None


def _look(context: TableContext) -> _Known:
    record = drive(read_record(context.name), context.store)
    rebuild, etag = (record[0], record[1].etag) if record else (None, None)
    current = drive(read_manifest(context.name), context.store)
    manifest = current.manifest if current else None
    return _Known(rebuild, etag, manifest, unresolved_failure(context, manifest, rebuild))


def _pause(known: _Known, scheduler: Scheduler, now: float) -> tuple[int, float]:
    """Return how many runs failed since the table landed something, and the seconds to wait until the next."""
    crashes = scheduler.crashes(known.progress)
    noted, ended = (known.failure.count, known.failure.failed_ms / 1000) if known.failure else (0, 0.0)
    count = max(noted, crashes.count)
    return count, pause_left(count, max(ended, crashes.ended), now)


def _rebuild(context: TableContext, known: _Known, why: str) -> Rebuild:
    if not may_rebuild(context):
        raise TableHeld(str(context.name), why)
    return Rebuild(known.progress)


def _pending(context: TableContext, known: _Known, scheduler: Scheduler) -> Action:
    # Finish a publication whose publisher died after its commit: perhaps nothing else is pending that would.
    current = drive(recover(context.name), context.store)
    # Taken before the log is planned: whatever is committed from here on differs from the mark.
    tip = context.log.tip_mark(current.manifest.covered) if current else None
    epoch = current.manifest.epoch if current else drive(first_epoch(context.name), context.store)
    plan = plan_table(context, scheduler.boundaries(epoch, current.manifest.covered if current else -1))
    if plan.slices:
        failed = known.failure.slice if known.failure else None
        pending = to_try(plan.partitions[: context.table.slices.max_per_run], failed)
        return Land(progress_of(plan.manifest, known.rebuild), plan, tuple(pending))
    _require_unbroken(context, plan)
    why = f"{context.name}: version {plan.state.version} is covered"
    if current is None or tip is None or not _agree(current, plan):
        return Rest(why)
    return Rest(why, QuietMark(current.etag, known.rebuild_etag, tip))


def _agree(current: VersionedManifest, plan: TablePlan) -> bool:
    """Return whether the plan was made from the recovered manifest and ends at the version that it covers."""
    return plan.manifest == current.manifest and plan.state.version == current.manifest.covered


def _require_unbroken(context: TableContext, plan: TablePlan) -> None:
    if plan.stop is not None and not plan.slices:
        raise stop_error(context.name, plan.stop)


def to_try(pending: Sequence[PlannedSlice], failed: str | None) -> Sequence[PlannedSlice]:
    """Return the slices before the one that failed last, or that one alone: only a run tells whether it is mended."""
    for index, planned in enumerate(pending):
        if str(slice_key(planned)) == failed:
            return pending[: max(index, 1)]
    return pending


@dataclass(frozen=True)
class QuietMark:
    """The ETags of manifest and rebuild record, and the newest commit file, when nothing was left to do.

    `rebuild_etag` is None where there was no record.
    """

    manifest_etag: str
    rebuild_etag: str | None
    tip: TipMark


def is_quiet(mark: QuietMark, table: TableName, store: Store, log: SourceLog) -> bool:
    """Return whether log, manifest and rebuild record are those of the mark: then there is still nothing to do.

    Costs two requests to the landing zone and one listing of the log; four requests where the log has more than a page
    of files. Raises what the store and the log raise.
    """
    return (
        _is_unchanged(store, table.manifest, mark.manifest_etag)
        and _is_unchanged(store, table.rebuild_record, mark.rebuild_etag)
        and log.is_still_tip(mark.tip)
    )


def _is_unchanged(store: Store, path: str, etag: str | None) -> bool:
    """Return whether the file still has the ETag; for None, whether it is still missing."""
    if etag is None:
        return store.head(path) is None
    try:
        return store.read_if_changed(path, etag, CONTROL_FILE_LIMIT) is None
    except PathMissing:
        return False
