"""Dropping a table for good: whoever else is alive, nothing of it is left, and what begins later is another epoch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mirror_assets.landing.drop import begin_drop, is_dropped, remove_table
from mirror_assets.landing.errors import EPOCH_ENDED, REBUILD_RUNNING, TABLE_DROPPED
from mirror_assets.landing.format import encode
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.publish import Outcome, publish
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild, drop_table_folder, read_rebuild
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.zones import LocalStore, Store
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landing.drops import NEW_SLICE, drop, mirrored, new_epoch, nothing_left
from mirror_assets_tests.landing.faults import points, run_with
from mirror_assets_tests.landing.staging import (
    CHECKS,
    KEYS,
    TABLE,
    land,
    landed_manifest,
    manifest_of,
    position_of,
    stage,
)
from mirror_assets_tests.landing.zone import landed
from mirror_assets_tests.zones.memory import MemoryStore


def test_folder_and_staged_attempts_go_and_the_record_stays(store: LocalStore) -> None:
    mirrored(store)
    record = drive(drop(), store)
    assert nothing_left(store)
    assert store.folder_identity(TABLE.folder) is None
    assert record == drive(read_rebuild(TABLE), store)
    assert (record.step, record.is_running, drive(is_dropped(TABLE), store)) == (RebuildStep.DROPPED, False, True)


def test_a_later_run_begins_another_epoch_with_a_snapshot(store: LocalStore) -> None:
    ended = mirrored(store)
    drive(drop(), store)
    assert drive(recover(TABLE), store) is None
    record = new_epoch(store)
    assert record.epoch > ended.epoch
    assert land(store, record).outcome is Outcome.LANDED
    assert landed(store) == [(1, (NEW_SLICE, 0))]
    assert not drive(is_dropped(TABLE), store)


def test_lives_go_on_through_drops_and_rebuilds(store: LocalStore) -> None:
    lives = []
    for last in range(3):
        land(store, new_epoch(store, last))
        lives.append(landed_manifest(store).epoch)
        drive(drop(), store)
    assert lives == sorted(set(lives))
    assert drive(begin_rebuild(TABLE), store).epoch > lives[-1]


def test_publishers_and_rebuilds_wait_while_a_table_is_dropped(store: LocalStore) -> None:
    mirrored(store)
    record = stage(store, position_of(store), last=3)
    drive(begin_drop(TABLE), store)
    for steps in (publish(TABLE, record, CHECKS), recover(TABLE), recover(TABLE, 2), begin_rebuild(TABLE)):
        with raises_row(TABLE_DROPPED, match="mirror-assets drop"):
            drive(steps, store)


def test_what_was_staged_for_the_dropped_epoch_is_refused(store: LocalStore) -> None:
    record = stage(store, position_of(store), last=7)
    drive(drop(), store)
    stage(store, position_of(store), last=7)
    with raises_row(TABLE_DROPPED):
        land(store, record)
    assert manifest_of(store) is None
    assert store.list(TABLE.folder) == []


@pytest.mark.parametrize(
    "step", [RebuildStep.STAGING, RebuildStep.DROPPING, RebuildStep.LOADING, RebuildStep.RETURNING]
)
def test_a_drop_takes_over_from_a_rebuild(store: LocalStore, step: RebuildStep) -> None:
    mirrored(store)
    rebuild = drive(begin_rebuild(TABLE), store)
    if step is not RebuildStep.STAGING:
        rebuild = drive(advance_rebuild(TABLE, rebuild, RebuildStep.DROPPING), store)
    if step not in (RebuildStep.STAGING, RebuildStep.DROPPING):
        drive(drop_table_folder(TABLE, rebuild), store)
        rebuild = drive(advance_rebuild(TABLE, rebuild, step), store)
    dropped = drive(drop(), store)
    assert dropped.epoch > rebuild.epoch
    with raises_row(REBUILD_RUNNING, match="dropped for good"):
        drive(advance_rebuild(TABLE, rebuild, RebuildStep.FINISHED), store)


def test_a_drop_whose_record_has_moved_on_deletes_no_new_epoch(store: LocalStore) -> None:
    mirrored(store)
    stalled = drive(begin_drop(TABLE), store)
    drive(drop(), store)
    land(store, new_epoch(store))
    with raises_row(REBUILD_RUNNING):
        drive(remove_table(TABLE, stalled), store)
    assert landed(store) == [(1, (NEW_SLICE, 0))]


class Stubborn(MemoryStore):
    """A store where somebody puts a file back into a folder that was deleted, once."""

    def delete_tree(self, folder: str, identity: str | None = None) -> None:
        first = self.folder_identity(folder) == "1"
        super().delete_tree(folder, identity)
        if folder == TABLE.folder and first:
            self.create(TABLE.metadata, metadata_bytes(KEYS))


def test_what_a_publisher_puts_back_meanwhile_goes_too() -> None:
    store = Stubborn()
    mirrored(store)
    drive(drop(), store)
    assert nothing_left(store)


def test_a_manifest_that_comes_late_leads_to_a_rebuild_and_another_drop_clears_it(store: LocalStore) -> None:
    ended = mirrored(store)
    drive(drop(), store)
    store.create(TABLE.manifest, encode(ended))
    with raises_row(EPOCH_ENDED, match="epoch 1, which ended"):
        drive(recover(TABLE), store)
    assert not drive(is_dropped(TABLE), store)
    drive(drop(), store)
    assert drive(is_dropped(TABLE), store)


def test_a_table_that_never_landed_can_be_dropped(store: LocalStore) -> None:
    assert drive(is_dropped(TABLE), store)
    store.create(TABLE.metadata, metadata_bytes(KEYS))
    assert not drive(is_dropped(TABLE), store)
    drive(drop(), store)
    assert drive(is_dropped(TABLE), store)


@pytest.mark.parametrize("prepare", [mirrored, lambda store: drive(begin_rebuild(TABLE), store)])
def test_whatever_goes_wrong_at_whichever_request_a_drop_that_is_run_again_ends(
    prepare: Callable[[Store], object],
) -> None:
    first = MemoryStore()
    prepare(first)
    for point in points(len(run_with(drop(), first.clone(), None))):
        zone = first.clone()
        run_with(drop(), zone, point)
        drive(drop(), zone)
        assert drive(is_dropped(TABLE), zone), str(point)
        land(zone, new_epoch(zone))
        assert landed(zone) == [(1, (NEW_SLICE, 0))], str(point)
