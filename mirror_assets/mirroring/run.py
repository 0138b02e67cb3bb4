"""Mirrors one table until nothing is left: plan, stage, check, land, slice after slice; rebuild at a break."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mirror_assets.audit.finding import Finding
from mirror_assets.config import OnBreak
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.delta.state import SourceState
from mirror_assets.errors import RebuildError
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.publish import Published
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.state import next_footing
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.errors import ChecksFailed, SourceBroke
from mirror_assets.mirroring.judge import judge_slice
from mirror_assets.mirroring.land import land_slice
from mirror_assets.mirroring.planning import plan_table
from mirror_assets.mirroring.rebuild import MirrorWait, rebuild_table
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


def mirror_table(work: TableWork, wait: MirrorWait, report: Callable[[str], None]) -> Iterator[MirroredSlice]:
    """Each slice as it has landed, until the source's tip is covered; a rebuild that was interrupted is ended first.

    Raises SourceBroke at a break with `on_break: hold`, ChecksFailed, and what staging and landing raise; the slices
    before have landed then.
    """
    running = drive(read_rebuild(work.name), work.store)
    if running is not None and running.is_running:
        rebuild_table(work, wait, report)
    while True:
        try:
            plan = plan_table(work)
            for planned in plan.slices:
                report(f"{work.name}: slice {slice_key(planned)}, {planned.rows} rows in {planned.parts} parts")
                yield mirror_slice(work, plan.state, planned)
            if plan.stop is not None:
                raise SourceBroke(str(work.name), plan.stop.version, plan.stop.message)
            if not plan.slices:
                return
        except RebuildError as error:
            if work.table.on_break is OnBreak.HOLD:
                raise
            report(f"rebuild, because {error.what}")
            rebuild_table(work, wait, report)


def mirror_slice(work: TableWork, source: SourceState, planned: PlannedSlice) -> MirroredSlice:
    """One slice of the source, staged, checked and landed. Raises ChecksFailed before anything is published."""
    began = time.monotonic()
    footing = next_footing(work.manifest(), life=planned.life, incarnation=uuid.uuid4().hex)
    record, findings = judge_slice(work, stage_slice(work, planned, footing))
    failed = tuple(f"{finding.check}: {finding.message}" for finding in findings if not finding.passed)
    if failed:
        raise ChecksFailed(str(work.name), record.slice, failed)
    published = land_slice(work, record.key)
    return MirroredSlice(source, planned, record, findings, published, time.monotonic() - began)
