"""One slice, or one chunk of a snapshot, from plan to landing files: stage, check, publish."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirror_assets.landing.errors import LOST_RACE
from mirror_assets.landing.format import SliceRecord, is_next
from mirror_assets.landing.publish import Published
from mirror_assets.landing.state import next_position
from mirror_assets.pipeline.check_slice import require_passed, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.plan import TablePlan, chunk_of, slice_key
from mirror_assets.pipeline.publish_slice import publish_next
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.source_state import SourceState
from mirror_assets.telemetry.record import slice_span
from mirror_assets.verify.check_result import CheckResult


@dataclass(frozen=True)
class ProcessedSlice:
    """A slice, or one chunk of it, that has landed.

    `source` is the source's state that it was planned from, `record` what was staged, `seconds` the time it took, and
    `steps` that of each step: `stage`, `check`, `publish`.
    """

    source: SourceState
    planned: PlannedSlice
    record: SliceRecord
    results: tuple[CheckResult, ...]
    published: Published
    seconds: float
    steps: Mapping[str, float] = field(default_factory=dict)


def process_slice(
    context: TableContext, plan: TablePlan, planned: PlannedSlice, rebuild_epoch: int | None = None
) -> ProcessedSlice:
    """Stage a slice of the plan, check it, and publish it.

    `rebuild_epoch` is the epoch of the rebuild on whose behalf it lands. Raises ChecksFailed before anything is
    published, LostRace when another run has landed something meanwhile, and what the three steps raise.
    """
    began = time.monotonic()
    with slice_span(context.work(slice_key(planned))):
        position = next_position(context.manifest(), epoch=planned.epoch, incarnation=uuid.uuid4().hex)
        fits = position.covered < 0 and is_next(slice_key(planned), chunk_of(planned), position.loading)
        if planned.is_snapshot and not fits:  # another run was earlier
            raise LOST_RACE(table=str(context.name), key=str(slice_key(planned)))
        record = stage_slice(context, planned, position)
        staged_at = time.monotonic()
        record, results = run_checks(context, record)
        require_passed(context, record, results)
        checked_at = time.monotonic()
        published = publish_next(context, record.slice, rebuild_epoch)
    ended = time.monotonic()
    steps = {"stage": staged_at - began, "check": checked_at - staged_at, "publish": ended - checked_at}
    return ProcessedSlice(plan.state, planned, record, results, published, ended - began, steps)
