"""Takes up what an earlier run has staged and not landed, instead of encoding it anew."""

from __future__ import annotations

from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.parts import best_attempt, is_refused, is_whole, staged_slices, stands_on
from mirror_assets.landing.state import Footing
from mirror_assets.mirroring.plan_digest import plan_digest
from mirror_assets.mirroring.stage import stage_slice
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.planner import PlannedSlice


def resume_or_stage(work: TableWork, planned: PlannedSlice, footing: Footing) -> SliceRecord:
    """The record of the slice: of an attempt that is there already, else of a new one.

    Its checks may have passed, or be still to come; whoever judges it looks at its parts either way. Raises what
    `stage_slice` raises.
    """
    return _staged_before(work, planned, footing) or stage_slice(work, planned, footing)


def _staged_before(work: TableWork, planned: PlannedSlice, footing: Footing) -> SliceRecord | None:
    """An attempt that is just what would be staged now, its parts unchanged; None when there is none.

    One whose parts are not all there may be on its way to land by another publisher: it is left alone.
    """
    staged = staged_slices(work.store, work.name, footing.generation)
    candidates = [record for record in staged if stands_on(record, footing) and not is_refused(record)]
    if not candidates:
        return None
    digest = plan_digest(work, planned)
    fitting = [record for record in candidates if record.plan == digest and is_whole(work.store, record)]
    return best_attempt(fitting) if fitting else None
