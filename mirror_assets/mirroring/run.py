"""Mirrors one table until nothing is left: plan, stage, check, land, slice after slice; rebuild at a break."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mirror_assets.audit.finding import Finding
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.delta.ranges import EVERYTHING, Range
from mirror_assets.delta.state import SourceState
from mirror_assets.errors import MirrorError, RebuildError
from mirror_assets.landing.errors import LostRace
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.publish import Published
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import Footing, next_footing
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.errors import SourceBroke
from mirror_assets.mirroring.judge import judge_slice, require_passed
from mirror_assets.mirroring.land import land_slice
from mirror_assets.mirroring.planning import plan_table
from mirror_assets.mirroring.rebuild import MirrorWait, may_rebuild, rebuild_table
from mirror_assets.mirroring.stage import slice_key, stage_slice
from mirror_assets.mirroring.work import TableWork


@dataclass(frozen=True)
class MirroredSlice:
    """A slice that went all the way: the source it came from, how it was staged, what its checks found, what landed."""

    source: SourceState
    planned: PlannedSlice
    record: SliceRecord
    findings: tuple[Finding, ...]
    published: Published
    seconds: float


def mirror_table(
    work: TableWork, wait: MirrorWait, report: Callable[[str], None], asked: Range = EVERYTHING
) -> Iterator[MirroredSlice]:
    """Each slice as it has landed, until the source's tip or the range's end is covered.

    What was interrupted is ended first. Raises SourceBroke at a break that is not rebuilt, ChecksFailed, RangeRefused,
    and what staging and landing raise; the slices before have landed then. Where another run is ahead, it plans again.
    """
    running = drive(read_rebuild(work.name), work.store)
    if running is not None and running.is_running:
        rebuild_table(work, wait, report)
    while True:
        try:
            drive(recover(work.name), work.store)
            plan = plan_table(work, asked=asked)
            for planned in plan.slices:
                report(f"{work.name}: slice {slice_key(planned)}, {planned.rows} rows in {planned.parts} parts")
                yield mirror_slice(work, plan.state, planned)
            if plan.stop is not None:
                raise SourceBroke(str(work.name), plan.stop.version, plan.stop.message)
            if not plan.slices:
                return
        except LostRace as error:
            report(error.what)
        except RebuildError as error:
            if not may_rebuild(work, asked):
                raise
            report(f"rebuild, because {error.what}")
            rebuild_table(work, wait, report)


def mirror_slice(work: TableWork, source: SourceState, planned: PlannedSlice) -> MirroredSlice:
    """One slice of the source, staged, checked and landed.

    Raises ChecksFailed before anything is published, and LostRace when another run has landed something meanwhile.
    """
    began = time.monotonic()
    footing = next_footing(work.manifest(), life=planned.life, incarnation=uuid.uuid4().hex)
    try:
        record, findings = judge_slice(work, stage_slice(work, planned, footing))
        require_passed(work, record, findings)
        published = land_slice(work, record.key)
    except MirrorError as error:
        if is_overtaken(work, footing):
            raise LostRace(str(work.name), str(slice_key(planned))) from error
        raise
    return MirroredSlice(source, planned, record, findings, published, time.monotonic() - began)


def is_overtaken(work: TableWork, footing: Footing) -> bool:
    """Whether the footing is taken: what was staged on it may have been cleared away under whoever was at it."""
    manifest = work.manifest()
    return manifest is not None and (manifest.life, manifest.generation) >= (footing.life, footing.generation)
