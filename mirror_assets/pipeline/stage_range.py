"""Stages the slices of a partition range ahead of publication, each as the generation behind the one before.

Dagster's asset changes stages all slices of a run, its checks read them, and landing publishes them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from mirror_assets.landing.errors import SliceMissing
from mirror_assets.landing.format import Manifest, SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import first_epoch
from mirror_assets.landing.staged_parts import best_attempt, staged_folders, staged_records, stands_on
from mirror_assets.landing.state import CommitPosition, next_position
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.plan import plan_key, plan_rest, plan_snapshot, position_after
from mirror_assets.pipeline.plan_changes import BaseState
from mirror_assets.pipeline.process import process_slice
from mirror_assets.pipeline.publish import require_loading
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.pipeline.start import begins_with_snapshot
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.source_state import SourceState


def stage_range(context: TableContext, keys: Sequence[SliceKey]) -> Iterator[SliceRecord | None]:
    """Yield the record of each slice, staged now or by an earlier run; None for one that has landed before.

    `keys` are in order; each slice is staged at the position behind the one before. Of a snapshot in chunks all but the
    last chunk are published at once, so that they need no space and stay if the run is killed. Raises SliceMissing when
    an earlier slice is neither landed nor staged in this run, snapshot_under_way for a snapshot of another version, and
    what planning, staging, checking and publishing raise.
    """
    manifest = context.manifest()
    position = next_position(
        manifest, epoch=drive(first_epoch(context.name), context.store), incarnation=uuid.uuid4().hex
    )
    base, tip = _base(manifest), _Tip(context)
    for key in keys:
        if is_done(manifest, key) or key.last <= position.covered:
            yield None
            continue
        if key.first > position.covered + 1:
            raise SliceMissing(str(context.name), str(key), position.covered + 1)
        require_loading(str(context.name), key, position)
        if base is None and begins_with_snapshot(context, key.epoch):
            planned, position = _all_but_the_last(context, key, position)
        else:
            planned = plan_key(context, key, base, tip.state)
        record = stage_slice(context, planned, position)
        position = position.behind(record)
        base = BaseState.staged(record, base)
        yield record


@dataclass(frozen=True)
class _Tip:
    """The source's newest version, read once, when it is first needed."""

    context: TableContext

    @cached_property
    def state(self) -> SourceState:
        return self.context.log.state()


def _base(manifest: Manifest | None) -> BaseState | None:
    if manifest is None or manifest.loading is not None:
        return None
    return BaseState.landed(manifest)


def _all_but_the_last(
    context: TableContext, key: SliceKey, position: CommitPosition
) -> tuple[PlannedSlice, CommitPosition]:
    """Publish all chunks of the snapshot but the last; return that, or the whole of a small one, and its position."""
    manifest = context.manifest()
    if manifest is not None and manifest.loading is not None:
        plan = plan_rest(context, manifest, manifest.loading)
    else:
        plan = plan_snapshot(context, key.epoch, key.last)
    *chunks, last = plan.slices
    for chunk in chunks:
        position = position_after(process_slice(context, plan, chunk).published.manifest)
    return last, position


def is_done(manifest: Manifest | None, key: SliceKey) -> bool:
    """Return whether the slice is of an earlier epoch, or has landed."""
    return manifest is not None and (key.epoch < manifest.epoch or key.last <= manifest.covered)


def staged_ahead(context: TableContext) -> tuple[SliceRecord, ...]:
    """Return the staged slices that can be published next, one after another."""
    manifest = context.manifest()
    position = next_position(manifest, epoch=drive(first_epoch(context.name), context.store), incarnation="")
    chain: list[SliceRecord] = []
    folders = staged_folders(context.store, context.name)
    for generation, attempts in groupby(folders, lambda folder: folder.generation):
        if generation < position.generation:
            continue  # it has landed, and is not deleted yet
        fitting = [record for record in staged_records(context.store, attempts) if stands_on(record, position)]
        if not fitting:
            break
        chain.append(best_attempt(fitting))
        position = position.behind(chain[-1])
    return tuple(chain)
