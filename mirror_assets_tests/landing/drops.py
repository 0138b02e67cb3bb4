"""A drop as tests run it, and tables to drop."""

from __future__ import annotations

from mirror_assets.landing.format import Manifest, SliceRecord
from mirror_assets.landing.rebuild import (
    RebuildRecord,
    RebuildStep,
    advance_rebuild,
    begin_drop,
    first_epoch,
    remove_table,
)
from mirror_assets.landing.state import CommitPosition
from mirror_assets.landing.steps import Steps, drive
from mirror_assets.zones import Store
from mirror_assets_tests.landing.staging import TABLE, hex_id, land_next, landed_manifest, position_of, stage

NEW_SLICE = 20


def drop() -> Steps[RebuildRecord]:
    """A drop from its beginning, or from where an earlier one was killed."""
    record = yield from begin_drop(TABLE)
    yield from remove_table(TABLE, record)
    return (yield from advance_rebuild(TABLE, record, RebuildStep.DROPPED))


def mirrored(store: Store, slices: int = 2) -> Manifest:
    """The manifest of a table with some slices landed, and another staged."""
    for last in range(slices):
        land_next(store, last)
    stage(store, position_of(store), last=slices, attempt="ahead")
    return landed_manifest(store)


def new_epoch(store: Store, last: int = NEW_SLICE) -> SliceRecord:
    """A staged snapshot of the epoch that begins now."""
    return stage(store, CommitPosition(drive(first_epoch(TABLE), store), hex_id("new"), 1, 1, -1), last, attempt="new")


def nothing_left(store: Store) -> bool:
    """Whether folder and staged attempts are gone."""
    return not (store.list(TABLE.folder) or store.list(TABLE.scratch))
