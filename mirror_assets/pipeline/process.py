"""Mirrors a table: plan, stage, check and publish each slice until nothing is left; rebuild at a break."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from mirror_assets.audit.finding import Finding
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
from mirror_assets.landing.state import Footing, next_footing
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.check import judge_slice, require_passed
from mirror_assets.pipeline.context import TableWork
from mirror_assets.pipeline.errors import SnapshotLost, stop_error
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.publish import land_next
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
    findings: tuple[Finding, ...]
    published: Published
    seconds: float


def mirror_table(
    work: TableWork,
    wait: MirrorWait,
    report: Callable[[str], None],
    asked: Range = EVERYTHING,
    rebuilt: Callable[[Published], None] | None = None,
) -> Iterator[MirroredSlice]:
    """Each slice, or chunk of one, as it has landed, up to the source's tip or the range's end.

    What was interrupted is ended first. A rebuild is none of the slices: `rebuilt` is told of what it has landed.
    Raises SourceBroke at a break that is not rebuilt, RowsChanged, ChecksFailed, RangeRefused, and what staging and
    landing raise; the slices before have landed then. Where another run is ahead, or Spark has lost something of its
    own, it plans again: what has landed stays, and what was staged for nothing makes room.
    """

    def rebuild() -> None:
        published = rebuild_table(work, wait, report)
        if rebuilt is not None:
            rebuilt(published)

    if _is_rebuilding(work):
        rebuild()
    left = _TIMES_AGAIN
    while True:
        try:
            if not (yield from _land_pending(work, report, asked)):
                return
        except (LostRace, SparkInterrupted) as error:
            left -= isinstance(error, SparkInterrupted)
            if left < 0:
                raise
            report(f"again, because {error.what}")
        except RebuildError as error:
            if not may_rebuild(work, asked):
                raise
            report(f"rebuild, because {error.what}")
            rebuild()


def _is_rebuilding(work: TableWork) -> bool:
    """Whether a rebuild, or a drop, was begun and has not ended."""
    running = drive(read_rebuild(work.name), work.store)
    return running is not None and running.is_running


def _land_pending(work: TableWork, report: Callable[[str], None], asked: Range) -> Generator[MirroredSlice, None, bool]:
    """Whether there was anything to land by the log of this moment."""
    drive(recover(work.name), work.store)
    plan = plan_table(work, asked=asked)
    for planned in plan.slices:
        report(f"{work.name}: {_named(planned)}")
        yield mirror_slice(work, plan.state, planned)
    if plan.stop is not None:
        raise stop_error(work.name, plan.stop)
    return bool(plan.slices)


def mirror_slice(work: TableWork, source: SourceState, planned: PlannedSlice) -> MirroredSlice:
    """One slice of the source, or one chunk of it, staged, checked and landed. Raises what carrying it raises."""
    began = time.monotonic()
    carried = carry_slice(work, planned)
    seconds = time.monotonic() - began
    return MirroredSlice(source, planned, carried.record, carried.findings, carried.published, seconds)


def _named(planned: PlannedSlice) -> str:
    chunk = f", chunk {planned.chunk}" if planned.chunk else ""
    return f"slice {slice_key(planned)}{chunk}, {planned.rows} rows in {planned.parts} parts"


@dataclass(frozen=True)
class Carried:
    """How it was staged, what its checks found, what landed."""

    record: SliceRecord
    findings: tuple[Finding, ...]
    published: Published


def carry_slice(work: TableWork, planned: PlannedSlice, rebuild_life: int | None = None) -> Carried:
    """The slice staged on what has landed, checked, and landed.

    Raises ChecksFailed before anything is published, LostRace when another run has landed something meanwhile, and
    SnapshotLost for a chunk whose version can't be read any more.
    """
    footing = next_footing(work.manifest(), life=planned.life, incarnation=uuid.uuid4().hex)
    _require_next(work, planned, footing)
    try:
        record, findings = stage_passed(work, planned, footing)
        return Carried(record, findings, land_next(work, record.key, rebuild_life))
    except MirrorError as error:
        if is_overtaken(work, footing):
            raise LostRace(str(work.name), str(slice_key(planned))) from error
        if isinstance(error, DataFileMissing) and footing.loading is not None:
            raise SnapshotLost(str(work.name), footing.loading, error.what) from error
        raise


def stage_passed(work: TableWork, planned: PlannedSlice, footing: Footing) -> tuple[SliceRecord, tuple[Finding, ...]]:
    """The slice staged on this footing, now or before, and what its checks found: they passed. Raises ChecksFailed."""
    record, findings = judge_slice(work, resume_or_stage(work, planned, footing))
    require_passed(work, record, findings)
    return record, findings


def is_overtaken(work: TableWork, footing: Footing) -> bool:
    """Whether the footing is taken: what was staged on it may have been cleared away under whoever was at it."""
    manifest = work.manifest()
    return manifest is not None and (manifest.life, manifest.generation) >= (footing.life, footing.generation)


def _require_next(work: TableWork, planned: PlannedSlice, footing: Footing) -> None:
    """Raise LostRace for a snapshot, or a chunk of it, that does not come next: another run was ahead."""
    key = slice_key(planned)
    fits = footing.covered < 0 and is_next(key, chunk_of(planned), footing.loading)
    if planned.is_snapshot and not fits:
        raise LostRace(str(work.name), str(key))
