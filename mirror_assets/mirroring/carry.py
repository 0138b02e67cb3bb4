"""Carries one planned slice, or one chunk of it, all the way: staged, checked, landed."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from mirror_assets.audit.finding import Finding
from mirror_assets.errors import MirrorError
from mirror_assets.landing.errors import LostRace
from mirror_assets.landing.format import SliceRecord, is_next
from mirror_assets.landing.publish import Published
from mirror_assets.landing.state import Footing, next_footing
from mirror_assets.mirroring.errors import SnapshotLost
from mirror_assets.mirroring.judge import judge_slice, require_passed
from mirror_assets.mirroring.land import land_next
from mirror_assets.mirroring.resume import resume_or_stage
from mirror_assets.mirroring.stage import chunk_of, slice_key
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.losses import DataFileMissing
from mirror_assets.source.planner import PlannedSlice


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
