"""Publishes a staged, checked slice; no Spark."""

from __future__ import annotations

import uuid

from mirror_assets.landing.errors import SliceMissing
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.parts import fitting_slice
from mirror_assets.landing.publish import Outcome, Published, publish
from mirror_assets.landing.recover import collect, list_attempts, recover
from mirror_assets.landing.state import Footing, next_footing
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.check import BLOCKING_CHECKS
from mirror_assets.pipeline.context import TableWork
from mirror_assets.pipeline.errors import SnapshotUnderWay


def land_slice(work: TableWork, key: SliceKey, rebuild_life: int | None = None) -> Published:
    """The publication of the slice, of the last of its chunks, or of what covered it before.

    Raises what `land_next` raises; chunks before the one that it is raised for have landed.
    """
    while True:
        published = land_next(work, key, rebuild_life)
        loading = published.manifest.loading
        if loading is None or loading.key != key:
            return published


def land_next(work: TableWork, key: SliceKey, rebuild_life: int | None = None) -> Published:
    """The publication of the slice, or of the next of its chunks, or of what covered it before.

    Raises SliceMissing (an earlier slice has not landed), SnapshotUnderWay (of another version), SliceNotStaged,
    SliceNotChecked, LostRace, and what the recovery of earlier publications raises.
    """
    standing = drive(recover(work.name, rebuild_life), work.store)
    manifest = standing.manifest if standing else None
    if manifest and key.life < manifest.life:
        return Published(Outcome.VOID, manifest)
    if manifest and key.last <= manifest.covered:
        return Published(Outcome.COVERED, manifest)
    footing = next_footing(manifest, life=key.life, incarnation=uuid.uuid4().hex)
    require_loading(str(work.name), key, footing)
    if key.first > footing.covered + 1:
        raise SliceMissing(str(work.name), str(key), footing.covered + 1)
    record = fitting_slice(work.store, work.name, key, footing)
    published = drive(publish(work.name, record, BLOCKING_CHECKS, rebuild_life), work.store)
    if work.exchange:
        attempts = drive(list_attempts(work.name), work.exchange)
        drive(collect(attempts, published.manifest), work.exchange)
    return published


def require_loading(table: str, key: SliceKey, footing: Footing) -> None:
    """Raise SnapshotUnderWay for another snapshot than the one of which chunks have landed."""
    if footing.loading is not None and key.first == 0 and key != footing.loading.key:
        raise SnapshotUnderWay(table, str(key), footing.loading)
