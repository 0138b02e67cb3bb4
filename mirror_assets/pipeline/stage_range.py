"""Stages the slices of a partition range before any is published, each as the generation after the previous one.

Dagster's asset changes stages all slices of a run, its checks read them, and landing publishes them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby

from mirror_assets.landing.errors import SLICE_MISSING
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import first_epoch
from mirror_assets.landing.staged_parts import best_attempt, staged_folders, staged_records, stands_on
from mirror_assets.landing.state import CommitPosition, next_position
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.binding import is_bound
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.plan import begins_with_snapshot, plan_key, plan_rest, plan_snapshot, position_after
from mirror_assets.pipeline.plan_changes import BaseState
from mirror_assets.pipeline.process import process_slice
from mirror_assets.pipeline.publish_slice import require_loading
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.source.planner import PlannedSlice


def stage_range(context: TableContext, keys: Sequence[SliceKey]) -> Iterator[SliceRecord | None]:
    """Yield the record of each slice, staged now or by an earlier run; None for one that has landed before.

    `keys` are in order; each slice is staged at the position after the previous one. Of a snapshot in chunks, all but
    the last chunk are published immediately, so that they need no space and are not lost if the run is killed. Raises
    SliceMissing when an earlier slice is neither landed nor staged in this run, snapshot_under_way for a snapshot of
    another version, and what planning, staging, checking and publishing raise.
    """
    manifest = context.manifest()
    position = next_position(
        manifest, epoch=drive(first_epoch(context.name), context.store), incarnation=uuid.uuid4().hex
    )
    base = BaseState.landed(manifest) if manifest is not None and manifest.loading is None else None
    tip = cache(context.log.state)
    for key in keys:
        is_past = manifest is not None and key.epoch < manifest.epoch
        if is_past or key.last <= position.covered:
            yield None
            continue
        if key.first > position.covered + 1:
            raise SLICE_MISSING(table=str(context.name), key=str(key), wanted_first=position.covered + 1)
        require_loading(str(context.name), key, position)
        if base is None and begins_with_snapshot(context, key.epoch):
            planned, position = _all_but_the_last(context, key, position)
        else:
            planned = plan_key(context, key, base, tip())
        record = stage_slice(context, planned, position)
        position = position.behind(record)
        base = BaseState.staged(record, base)
        yield record


def _all_but_the_last(
    context: TableContext, key: SliceKey, position: CommitPosition
) -> tuple[PlannedSlice, CommitPosition]:
    """Publish all chunks of the snapshot but the last; return that, or the whole of a small one, and its position."""
    manifest = context.manifest()
    if manifest is not None and manifest.loading is not None:
        plan = plan_rest(context, manifest, manifest.loading)
    else:
        plan = plan_snapshot(context, context.log.state(key.last), key.epoch)
    *chunks, last = plan.slices
    for chunk in chunks:
        position = position_after(process_slice(context, plan, chunk).published.manifest)
    return last, position


def staged_ahead(context: TableContext) -> tuple[SliceRecord, ...]:
    """Return the staged slices that can be published next, one after another, up to one with other settings."""
    manifest = context.manifest()
    position = next_position(manifest, epoch=drive(first_epoch(context.name), context.store), incarnation="")
    chain: list[SliceRecord] = []
    folders = staged_folders(context.store, context.name)
    for generation, attempts in groupby(folders, lambda folder: folder.generation):
        if generation < position.generation:
            continue  # it has landed, and is not deleted yet
        staged = [record for record in staged_records(context.store, attempts) if stands_on(record, position)]
        fitting = [record for record in staged if is_bound(context.table, record)]
        if not fitting:
            break
        chain.append(best_attempt(fitting))
        position = position.behind(chain[-1])
    return tuple(chain)
