"""Mirrors one table until nothing is left: slice after slice, chunk after chunk; a rebuild at a break."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from mirror_assets.audit.finding import Finding
from mirror_assets.errors import RebuildError
from mirror_assets.landing.errors import LostRace
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.publish import Published
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.carry import carry_slice
from mirror_assets.mirroring.errors import stop_error
from mirror_assets.mirroring.planning import plan_table
from mirror_assets.mirroring.rebuild import MirrorWait, may_rebuild, rebuild_table
from mirror_assets.mirroring.stage import slice_key
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.losses import SparkInterrupted
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import EVERYTHING, Range
from mirror_assets.source.state import SourceState

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
