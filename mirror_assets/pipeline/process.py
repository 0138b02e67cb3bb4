"""Mirrors a table: plan, stage, check and publish each slice until nothing is left; rebuild at a break."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from mirror_assets.audit.finding import CheckResult
from mirror_assets.delta.losses import DataFileMissing, SparkInterrupted
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.delta.ranges import EVERYTHING, Range
from mirror_assets.delta.state import SourceState
from mirror_assets.errors import MirrorError, RebuildError
from mirror_assets.landing.errors import LostRace
from mirror_assets.landing.format import SliceRecord, is_next
from mirror_assets.landing.publish import Published
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import CommitPosition, next_position
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.check import require_passed, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import SnapshotLost, stop_error
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.publish import publish_next
from mirror_assets.pipeline.rebuild import MirrorWait, may_rebuild, rebuild_table
from mirror_assets.pipeline.stage import chunk_of, resume_or_stage, slice_key

# A step of a table that Spark's own faults have ended is begun again this often in a run.
_TIMES_AGAIN = 2


@dataclass(frozen=True)
class MirroredSlice:
    """A slice, or one chunk of it, that went all the way.

    The source it came from, how it was staged, what its checks found, what landed.
    """

    source: SourceState
    planned: PlannedSlice
    record: SliceRecord
    results: tuple[CheckResult, ...]
    published: Published
    seconds: float


def mirror_table(
    context: TableContext,
    wait: MirrorWait,
    report: Callable[[str], None],
    requested: Range = EVERYTHING,
    rebuilt: Callable[[Published], None] | None = None,
) -> Iterator[MirroredSlice]:
    """Each slice, or chunk of one, as it has landed, up to the source's tip or the range's end.

    What was interrupted is ended first. A rebuild is none of the slices: `rebuilt` is told of what it has landed.
    Raises SourceBroke at a break that is not rebuilt, RowsChanged, ChecksFailed, RangeRefused, and what staging and
    landing raise; the slices before have landed then. Where another run is ahead, or Spark has lost something of its
    own, it plans again: what has landed stays, and what was staged for nothing makes room.
    """

    def rebuild() -> None:
        published = rebuild_table(context, wait, report)
        if rebuilt is not None:
            rebuilt(published)

    if _is_rebuilding(context):
        rebuild()
    left = _TIMES_AGAIN
    while True:
        try:
            if not (yield from _land_pending(context, report, requested)):
                return
        except (LostRace, SparkInterrupted) as error:
            left -= isinstance(error, SparkInterrupted)
            if left < 0:
                raise
            report(f"again, because {error.what}")
        except RebuildError as error:
            if not may_rebuild(context, requested):
                raise
            report(f"rebuild, because {error.what}")
            rebuild()


def _is_rebuilding(context: TableContext) -> bool:
    """Whether a rebuild, or a drop, was begun and has not ended."""
    running = drive(read_rebuild(context.name), context.store)
    return running is not None and running.is_running


def _land_pending(
    context: TableContext, report: Callable[[str], None], requested: Range
) -> Generator[MirroredSlice, None, bool]:
    """Whether there was anything to land by the log of this moment."""
    drive(recover(context.name), context.store)
    plan = plan_table(context, requested=requested)
    for planned in plan.slices:
        report(f"{context.name}: {_named(planned)}")
        yield mirror_slice(context, plan.state, planned)
    if plan.stop is not None:
        raise stop_error(context.name, plan.stop)
    return bool(plan.slices)


def mirror_slice(context: TableContext, source: SourceState, planned: PlannedSlice) -> MirroredSlice:
    """One slice of the source, or one chunk of it, staged, checked and landed. Raises what carrying it raises."""
    began = time.monotonic()
    carried = process_slice(context, planned)
    seconds = time.monotonic() - began
    return MirroredSlice(source, planned, carried.record, carried.results, carried.published, seconds)


def _named(planned: PlannedSlice) -> str:
    chunk = f", chunk {planned.chunk}" if planned.chunk else ""
    return f"slice {slice_key(planned)}{chunk}, {planned.rows} rows in {planned.parts} parts"


@dataclass(frozen=True)
class Carried:
    """How it was staged, what its checks found, what landed."""

    record: SliceRecord
    results: tuple[CheckResult, ...]
    published: Published


def process_slice(context: TableContext, planned: PlannedSlice, rebuild_epoch: int | None = None) -> Carried:
    """The slice staged on what has landed, checked, and landed.

    Raises ChecksFailed before anything is published, LostRace when another run has landed something meanwhile, and
    SnapshotLost for a chunk whose version can't be read any more.
    """
    position = next_position(context.manifest(), epoch=planned.epoch, incarnation=uuid.uuid4().hex)
    _require_next(context, planned, position)
    try:
        record, results = stage_passed(context, planned, position)
        return Carried(record, results, publish_next(context, record.key, rebuild_epoch))
    except MirrorError as error:
        if is_overtaken(context, position):
            raise LostRace(str(context.name), str(slice_key(planned))) from error
        if isinstance(error, DataFileMissing) and position.loading is not None:
            raise SnapshotLost(str(context.name), position.loading, error.what) from error
        raise


def stage_passed(
    context: TableContext, planned: PlannedSlice, position: CommitPosition
) -> tuple[SliceRecord, tuple[CheckResult, ...]]:
    """The slice staged on this footing, now or before, and what its checks found: they passed. Raises ChecksFailed."""
    record, results = run_checks(context, resume_or_stage(context, planned, position))
    require_passed(context, record, results)
    return record, results


def is_overtaken(context: TableContext, position: CommitPosition) -> bool:
    """Whether the footing is taken: what was staged on it may have been cleared away under whoever was at it."""
    manifest = context.manifest()
    return manifest is not None and (manifest.epoch, manifest.generation) >= (position.epoch, position.generation)


def _require_next(context: TableContext, planned: PlannedSlice, position: CommitPosition) -> None:
    """Raise LostRace for a snapshot, or a chunk of it, that does not come next: another run was ahead."""
    key = slice_key(planned)
    fits = position.covered < 0 and is_next(key, chunk_of(planned), position.loading)
    if planned.is_snapshot and not fits:
        raise LostRace(str(context.name), str(key))
