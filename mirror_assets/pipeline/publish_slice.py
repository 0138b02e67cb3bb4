"""Publishes a staged slice whose checks have passed: its parts become landing files. No Spark."""

from __future__ import annotations

import uuid

from mirror_assets.landing.cost import landing_cost
from mirror_assets.landing.errors import LOST_RACE, SLICE_MISSING, SLICE_OUTDATED
from mirror_assets.landing.format import MarkerCounts, SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome, Published, publish
from mirror_assets.landing.recover import collect, list_attempts, recover
from mirror_assets.landing.staged_parts import best_attempt, fitting_slices
from mirror_assets.landing.state import CommitPosition, next_position
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.binding import is_bound
from mirror_assets.pipeline.check_slice import blocking_checks
from mirror_assets.pipeline.context import TableContext, not_overtaken
from mirror_assets.pipeline.errors import SNAPSHOT_UNDER_WAY
from mirror_assets.telemetry.record import Stage, record_published, set_attempt, stage_span


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

    Finishes an interrupted publication first. Raises SliceMissing (an earlier slice has not landed), snapshot_under_way
    (of another version), SliceNotStaged, SliceOutdated (staged with other settings), SliceNotChecked, LostRace, and
    what recovery raises.
    """
    with stage_span(Stage.PUBLISH, context.work(key)):
        published = _publish_next(context, key, rebuild_epoch)
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


def _publish_next(context: TableContext, key: SliceKey, rebuild_epoch: int | None) -> Published:
    current = drive(recover(context.name, rebuild_epoch), context.store)
    manifest = current.manifest if current else None
    if manifest and key.epoch < manifest.epoch:
        return Published(Outcome.VOID, manifest)
    if manifest and key.last <= manifest.covered:
        return Published(Outcome.COVERED, manifest)
    position = next_position(manifest, epoch=key.epoch, incarnation=uuid.uuid4().hex)
    require_loading(str(context.name), key, position)
    if key.first > position.covered + 1:
        raise SLICE_MISSING(table=str(context.name), key=str(key), wanted_first=position.covered + 1)
    with not_overtaken(context, position.epoch, position.generation, key):
        record = _bound_attempt(context, key, position)
        set_attempt(record.attempt)
        published = drive(publish(context.name, record, blocking_checks(context), rebuild_epoch), context.store)
    _collect_copies(context, published)
    return published


def _bound_attempt(context: TableContext, key: SliceKey, position: CommitPosition) -> SliceRecord:
    """Return the best attempt at the slice with the settings now. Raises SliceNotStaged and SliceOutdated."""
    fitting = fitting_slices(context.store, context.name, key, position)
    bound = [record for record in fitting if is_bound(context.table, record)]
    if not bound:
        raise SLICE_OUTDATED(table=str(context.name), key=str(key))
    return best_attempt(bound)


def _collect_copies(context: TableContext, published: Published) -> None:
    """Delete the local copies of staged parts that can't be committed any more."""
    if context.local_staging:
        attempts = drive(list_attempts(context.name), context.local_staging)
        drive(collect(attempts, published.manifest), context.local_staging)


def require_loading(table: str, key: SliceKey, position: CommitPosition) -> None:
    """Raise snapshot_under_way for a snapshot that is not the one of which chunks have landed."""
    if position.loading is not None and key.first == 0 and key != position.loading.key:
        raise SNAPSHOT_UNDER_WAY(table=table, key=str(key), loading=position.loading)
