"""Lands slices: from plan to landing files in three steps, stage, check and publish.

Jobs and the command line land one slice after another (`process_slice`). Dagster's asset changes stages all slices of a
run (`stage_range`), its checks read them, and landing publishes them (`publish_slice`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

from mirror_assets.landing.cost import landing_cost
from mirror_assets.landing.errors import LOST_RACE, SLICE_MISSING, SLICE_OUTDATED
from mirror_assets.landing.format import MarkerCounts, SliceRecord, is_next
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome, Published, publish, publish_after, recover_to_publish
from mirror_assets.landing.rebuild import first_epoch
from mirror_assets.landing.recover import collect, list_attempts
from mirror_assets.landing.staged_parts import best_attempt, fitting_slices, staged_folders, staged_records, stands_on
from mirror_assets.landing.state import CommitPosition, next_position
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.check_slice import blocking_checks, require_passed, run_checks
from mirror_assets.pipeline.context import TableContext, not_overtaken
from mirror_assets.pipeline.errors import SNAPSHOT_UNDER_WAY
from mirror_assets.pipeline.plan import (
    TablePlan,
    begins_with_snapshot,
    plan_key,
    plan_rest,
    plan_snapshot,
    position_after,
)
from mirror_assets.pipeline.plan_changes import BaseState
from mirror_assets.pipeline.slice_source import chunk_of, is_bound, slice_key
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.source.commits import SourceState
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.telemetry.progress import working
from mirror_assets.telemetry.record import Stage, record_published, set_attempt, slice_span, stage_span
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

    def stage() -> SliceRecord:
        position = next_position(context.manifest(), epoch=planned.epoch, incarnation=uuid.uuid4().hex)
        fits = position.covered < 0 and is_next(slice_key(planned), chunk_of(planned), position.loading)
        if planned.is_snapshot and not fits:  # another run was earlier
            raise LOST_RACE(table=str(context.name), key=str(slice_key(planned)))
        return stage_slice(context, planned, position)

    def publish_it(record: SliceRecord) -> Published:
        return publish_next(context, record.slice, rebuild_epoch)

    return in_three_steps(context, plan.state, planned, stage, publish_it, time.monotonic())


def in_three_steps(
    context: TableContext,
    source: SourceState,
    planned: PlannedSlice,
    stage: Callable[[], SliceRecord],
    publish_it: Callable[[SliceRecord], Published],
    began: float,
) -> ProcessedSlice:
    """Stage a slice, check it and publish it; `began` is when staging did. Raises ChecksFailed before publishing."""
    with slice_span(context.work(slice_key(planned))), working(str(context.name)):
        record = stage()
        staged_at = time.monotonic()
        record, results = run_checks(context, record)
        require_passed(context, record, results)
        checked_at = time.monotonic()
        published = publish_it(record)
    ended = time.monotonic()
    steps = {"stage": staged_at - began, "check": checked_at - staged_at, "publish": ended - checked_at}
    return ProcessedSlice(source, planned, record, results, published, ended - began, steps)


def publish_slice(context: TableContext, key: SliceKey, rebuild_epoch: int | None = None) -> Published:
    """Publish the slice, or all of its chunks, and return the last publication; also of a slice that landed before.

    Raises what `publish_next` raises; the chunks before the one that failed have landed.
    """
    while True:
        published = publish_next(context, key, rebuild_epoch)
        loading = published.manifest.loading
        if loading is None or loading.key != key:
            return published


def publish_next(context: TableContext, key: SliceKey, rebuild_epoch: int | None = None) -> Published:
    """Publish the slice, or the next of its chunks, and return the publication; also of what landed before.

    Finishes an interrupted publication first. Raises SLICE_MISSING (an earlier slice has not landed),
    SNAPSHOT_UNDER_WAY (of another version), SLICE_NOT_STAGED, SLICE_OUTDATED (staged with other settings),
    SLICE_NOT_CHECKED, LostRace, and what recovery raises.
    """
    with stage_span(Stage.PUBLISH, context.work(key)):
        recovered = drive(recover_to_publish(context.name, rebuild_epoch), context.store)
        manifest = recovered.current.manifest if recovered.current else None
        if manifest and key.epoch < manifest.epoch:
            return Published(Outcome.VOID, manifest)
        if manifest and key.last <= manifest.covered:
            return Published(Outcome.COVERED, manifest)
        position = next_position(manifest, epoch=key.epoch, incarnation=uuid.uuid4().hex)
        require_loading(str(context.name), key, position)
        if key.first > position.covered + 1:
            raise SLICE_MISSING(table=str(context.name), key=str(key), wanted_first=position.covered + 1)
        with not_overtaken(context, position.epoch, position.generation, key):
            # Only attempts with the settings now.
            fitting = fitting_slices(context.store, recovered.attempts, context.name, key, position)
            bound = [record for record in fitting if is_bound(context.table, record)]
            if not bound:
                raise SLICE_OUTDATED(table=str(context.name), key=str(key))
            record = best_attempt(bound)
            set_attempt(record.attempt)
            checks = blocking_checks(context)
            published = drive(publish_after(context.name, recovered, record, checks), context.store)
        _collect_copies(context, published)
    return _recorded(context, published)


def publish_repair(context: TableContext, record: SliceRecord) -> Published:
    """Publish this repair slice. Raises LostRace if any other slice has landed since it was staged."""
    with (
        stage_span(Stage.PUBLISH, context.work(record.slice)),
        not_overtaken(context, record.epoch, record.generation, record.slice),
    ):
        set_attempt(record.attempt)
        published = drive(publish(context.name, record, blocking_checks(context)), context.store)
    if published.outcome is Outcome.VOID:  # a rebuild has begun another epoch
        raise LOST_RACE(table=str(context.name), key=str(record.slice))
    _collect_copies(context, published)
    return _recorded(context, published)


def _recorded(context: TableContext, published: Published) -> Published:
    """Return the publication, after its metrics are recorded."""
    if published.outcome is Outcome.LANDED:
        manifest, entries = published.manifest, published.entries
        committed, cost = manifest.covered_commit_ms, landing_cost(1, len(entries))
        record_published(
            str(context.name),
            manifest.kind.value,
            files=len(entries),
            size=sum(entry.bytes for entry in entries),
            rows=sum((entry.markers for entry in entries), MarkerCounts()).model_dump(),
            committed=None if committed is None else committed / 1000,
            requests=cost.requests,
            capacity_seconds=cost.capacity_seconds,
            unproved=published.unproved,
            by_files=published.by_files,
        )
    return published


def _collect_copies(context: TableContext, published: Published) -> None:
    """Delete the local copies of staged parts that can't be committed any more."""
    if context.local_staging:
        attempts = drive(list_attempts(context.name), context.local_staging)
        drive(collect(attempts, published.manifest), context.local_staging)


def require_loading(table: str, key: SliceKey, position: CommitPosition) -> None:
    """Raise SNAPSHOT_UNDER_WAY for a snapshot that is not the one of which chunks have landed."""
    if position.loading is not None and key.first == 0 and key != position.loading.key:
        raise SNAPSHOT_UNDER_WAY(table=table, key=str(key), loading=position.loading)


def stage_range(context: TableContext, keys: Sequence[SliceKey]) -> Iterator[SliceRecord | None]:
    """Yield the record of each slice, staged now or by an earlier run; None for one that has landed before.

    `keys` are in order; each slice is staged at the position after the previous one. Of a snapshot in chunks, all but
    the last chunk are published immediately, so that they need no space and are not lost if the run is killed. Raises
    SLICE_MISSING when an earlier slice is neither landed nor staged in this run, SNAPSHOT_UNDER_WAY for a snapshot of
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
