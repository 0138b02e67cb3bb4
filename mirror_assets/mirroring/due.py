"""What is to do for a table now, by its log, its landing zone and the runs that failed: no cursor, and no JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mirror_assets.audit.finding import Finding
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.errors import RebuildError
from mirror_assets.landing.failures import FailureRecord
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.rebuild import Position, RebuildRecord, first_life, position_of, read_record
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import Standing, read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.errors import TableHeld, stop_error
from mirror_assets.mirroring.failures import pause_left, standing_failure
from mirror_assets.mirroring.lease import holder
from mirror_assets.mirroring.planning import TablePlan, plan_table
from mirror_assets.mirroring.quiet import QuietMark
from mirror_assets.mirroring.rebuild import may_rebuild
from mirror_assets.mirroring.stage import slice_key
from mirror_assets.mirroring.work import TableWork

NOT_HELD = "not_held"


@dataclass(frozen=True)
class Rest:
    """Nothing now, and why; the mark if that holds until something changes, and not only for a while."""

    why: str
    mark: QuietMark | None = None


@dataclass(frozen=True)
class Rebuild:
    """A rebuild, begun or gone on with."""

    position: Position


@dataclass(frozen=True)
class Land:
    """The slices of the plan that may be tried in one run."""

    position: Position
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

    Of the latter, those of a life, behind a covered version: their keys stay as they are.
    """

    crashes: Callable[[Position], Crashes]
    boundaries: Callable[[int, int], frozenset[int]]


@dataclass(frozen=True)
class _Known:
    """What the landing zone says of the table."""

    rebuild: RebuildRecord | None
    rebuild_etag: str | None
    manifest: Manifest | None
    failure: FailureRecord | None

    @property
    def position(self) -> Position:
        return position_of(self.manifest, self.rebuild)


def next_action(work: TableWork, scheduler: Scheduler, now: float) -> Action:
    """What is to do at `now` (seconds since 1970). An interrupted rebuild comes first, then what a run has told.

    Raises TableHeld for a table that only a person may have rebuilt, and what the log, the manifest, recovery and the
    check of settings against the source raise.
    """
    busy = holder(work.store, work.name)
    if busy is not None:
        return Rest(str(busy))
    known = _look(work)
    failures, pause = _pause(known, scheduler, now)
    if pause > 0:
        return Rest(f"{failures} runs of {work.name} failed; next one in {pause:.0f} s")
    if known.rebuild is not None and known.rebuild.is_running and not known.rebuild.is_drop:
        return Rebuild(known.position)
    try:
        if known.failure is not None and known.failure.rebuild is not None:
            return _rebuild(work, known, known.failure.rebuild)
        return _pending(work, known, scheduler)
    except RebuildError as error:
        return _rebuild(work, known, error.what)


def held_finding(work: TableWork) -> Finding:
    """The check not_held: whether the table waits for a person who has it rebuilt. Raises as `next_action` does."""
    why = _held(work)
    return Finding(NOT_HELD, (why,) if why else ())


def _held(work: TableWork) -> str | None:
    known = _look(work)
    if known.rebuild is not None and known.rebuild.is_running:
        return None
    try:
        if known.failure is not None and known.failure.rebuild is not None:
            _rebuild(work, known, known.failure.rebuild)
        else:
            _require_unbroken(work, plan_table(work))
    except TableHeld as error:
        return str(error)
    except RebuildError as error:
        return None if may_rebuild(work) else str(TableHeld(str(work.name), error.what))
    return None


def _look(work: TableWork) -> _Known:
    record = drive(read_record(work.name), work.store)
    rebuild, etag = (record[0], record[1].etag) if record else (None, None)
    standing = drive(read_manifest(work.name), work.store)
    manifest = standing.manifest if standing else None
    return _Known(rebuild, etag, manifest, standing_failure(work, manifest, rebuild))


def _pause(known: _Known, scheduler: Scheduler, now: float) -> tuple[int, float]:
    """How many runs failed since the table moved, and the seconds to wait for it still."""
    crashes = scheduler.crashes(known.position)
    noted, ended = (known.failure.count, known.failure.failed_ms / 1000) if known.failure else (0, 0.0)
    count = max(noted, crashes.count)
    return count, pause_left(count, max(ended, crashes.ended), now)


def _rebuild(work: TableWork, known: _Known, why: str) -> Rebuild:
    if not may_rebuild(work):
        raise TableHeld(str(work.name), why)
    return Rebuild(known.position)


def _pending(work: TableWork, known: _Known, scheduler: Scheduler) -> Action:
    # What was committed before a publisher died gets its numbers now: nothing else may be pending to bring it along.
    standing = drive(recover(work.name), work.store)
    # Before the log is planned: what is committed or replaced from here on is seen by the next look.
    tip = work.log.tip_mark(standing.manifest.covered) if standing else None
    life = standing.manifest.life if standing else drive(first_life(work.name), work.store)
    plan = plan_table(work, scheduler.boundaries(life, standing.manifest.covered if standing else -1))
    if plan.slices:
        failed = known.failure.slice if known.failure else None
        pending = to_try(plan.partitions[: work.table.slices.max_per_run], failed)
        return Land(position_of(plan.manifest, known.rebuild), plan, tuple(pending))
    _require_unbroken(work, plan)
    why = f"{work.name}: version {plan.state.version} is covered"
    if standing is None or tip is None or not _agree(standing, plan):
        return Rest(why)
    return Rest(why, QuietMark(standing.etag, known.rebuild_etag, tip))


def _agree(standing: Standing, plan: TablePlan) -> bool:
    """Whether the plan was made on the manifest that was recovered, up to the version that it covers."""
    return plan.manifest == standing.manifest and plan.state.version == standing.manifest.covered


def _require_unbroken(work: TableWork, plan: TablePlan) -> None:
    if plan.stop is not None and not plan.slices:
        raise stop_error(work.name, plan.stop)


def to_try(pending: Sequence[PlannedSlice], failed: str | None) -> Sequence[PlannedSlice]:
    """Slices up to the one that failed last, which is tried alone: mended or not, only a run can tell."""
    for index, planned in enumerate(pending):
        if str(slice_key(planned)) == failed:
            return pending[: max(index, 1)]
    return pending
