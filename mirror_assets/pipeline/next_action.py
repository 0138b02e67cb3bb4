"""What is to do for a table now, by its log, its landing zone and the runs that failed: no cursor, and no JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mirror_assets.audit.finding import CheckResult
from mirror_assets.delta.files import TipMark
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.errors import RebuildError
from mirror_assets.landing.failures import FailureRecord
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.landing.progress import Progress, progress_of
from mirror_assets.landing.rebuild import RebuildRecord, first_epoch, read_record
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import VersionedManifest, read_manifest
from mirror_assets.landing.steps import CONTROL_FILE_LIMIT, drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.coordination import holder, pause_left, unresolved_failure
from mirror_assets.pipeline.errors import TableHeld, stop_error
from mirror_assets.pipeline.plan import TablePlan, plan_table, slice_key
from mirror_assets.pipeline.rebuild import may_rebuild
from mirror_assets.storage import PathMissing, Store

NOT_HELD = "not_held"


@dataclass(frozen=True)
class Rest:
    """Nothing now, and why; the mark if that holds until something changes, and not only for a while."""

    why: str
    mark: QuietMark | None = None


@dataclass(frozen=True)
class Rebuild:
    """A rebuild, begun or gone on with."""

    progress: Progress


@dataclass(frozen=True)
class Land:
    """The slices of the plan that may be tried in one run."""

    progress: Progress
    plan: TablePlan
    slices: tuple[PlannedSlice, ...]


Action = Rest | Rebuild | Land


@dataclass(frozen=True)
class Crashes:
    """Runs that failed in a row at a position of the table, as their scheduler knows: a killed one tells nobody else.

    `ended` is when the last did, in seconds since 1970.
    """

    count: int = 0
    ended: float = 0.0


@dataclass(frozen=True)
class Scheduler:
    """What only whoever starts runs knows: runs that failed at a position, and last versions of slices that were named.

    Of the latter, those of an epoch, behind a covered version: their keys stay as they are.
    """

    crashes: Callable[[Progress], Crashes]
    boundaries: Callable[[int, int], frozenset[int]]


@dataclass(frozen=True)
class _Known:
    """What the landing zone says of the table."""

    rebuild: RebuildRecord | None
    rebuild_etag: str | None
    manifest: Manifest | None
    failure: FailureRecord | None

    @property
    def progress(self) -> Progress:
        return progress_of(self.manifest, self.rebuild)


def next_action(context: TableContext, scheduler: Scheduler, now: float) -> Action:
    """What is to do at `now` (seconds since 1970). An interrupted rebuild comes first, then what a run has told.

    Raises TableHeld for a table that only a person may have rebuilt, and what the log, the manifest, recovery and the
    check of settings against the source raise.
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
    """The check not_held: whether the table waits for a person who has it rebuilt. Raises as `next_action` does."""
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
    """How many runs failed since the table moved, and the seconds to wait for it still."""
    crashes = scheduler.crashes(known.progress)
    noted, ended = (known.failure.count, known.failure.failed_ms / 1000) if known.failure else (0, 0.0)
    count = max(noted, crashes.count)
    return count, pause_left(count, max(ended, crashes.ended), now)


def _rebuild(context: TableContext, known: _Known, why: str) -> Rebuild:
    if not may_rebuild(context):
        raise TableHeld(str(context.name), why)
    return Rebuild(known.progress)


def _pending(context: TableContext, known: _Known, scheduler: Scheduler) -> Action:
    # What was committed before a publisher died gets its numbers now: nothing else may be pending to bring it along.
    current = drive(recover(context.name), context.store)
    # Before the log is planned: what is committed or replaced from here on is seen by the next look.
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
    """Whether the plan was made on the manifest that was recovered, up to the version that it covers."""
    return plan.manifest == current.manifest and plan.state.version == current.manifest.covered


def _require_unbroken(context: TableContext, plan: TablePlan) -> None:
    if plan.stop is not None and not plan.slices:
        raise stop_error(context.name, plan.stop)


def to_try(pending: Sequence[PlannedSlice], failed: str | None) -> Sequence[PlannedSlice]:
    """Slices up to the one that failed last, which is tried alone: mended or not, only a run can tell."""
    for index, planned in enumerate(pending):
        if str(slice_key(planned)) == failed:
            return pending[: max(index, 1)]
    return pending


@dataclass(frozen=True)
class QuietMark:
    """What a complete look has seen: the manifest and the rebuild record by their ETags, and the newest commit file.

    `rebuild_etag` is None where there was no record.
    """

    manifest_etag: str
    rebuild_etag: str | None
    tip: TipMark


def is_quiet(mark: QuietMark, table: TableName, store: Store, log: SourceLog) -> bool:
    """Whether all is as it was marked. Raises what the store and the log raise.

    It costs two requests of the landing zone, and of the source one listing; four requests instead where the log has
    more than a page of files.
    """
    return (
        _is_unchanged(store, table.manifest, mark.manifest_etag)
        and _is_unchanged(store, table.rebuild_record, mark.rebuild_etag)
        and log.is_still_tip(mark.tip)
    )


def _is_unchanged(store: Store, path: str, etag: str | None) -> bool:
    """Whether the file still has the ETag; None: whether there still is none."""
    if etag is None:
        return store.head(path) is None
    try:
        return store.read_if_changed(path, etag, CONTROL_FILE_LIMIT) is None
    except PathMissing:
        return False
