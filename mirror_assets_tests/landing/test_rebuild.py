"""The rebuild record: one rebuild at a time, epochs that never repeat, and requests of the ended epoch come late.

Dropping a table for good: whoever else is alive, nothing of it is left, and what begins later is another epoch.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mirror_assets.landing.errors import EPOCH_ENDED, METADATA_DIFFERS, REBUILD_RUNNING, TABLE_DROPPED
from mirror_assets.landing.format import Manifest, encode
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.names import AttemptFolder
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import (
    RebuildRecord,
    RebuildStep,
    advance_rebuild,
    begin_drop,
    begin_rebuild,
    drop_table_folder,
    first_epoch,
    is_dropped,
    read_rebuild,
    remove_table,
)
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import CommitPosition
from mirror_assets.landing.steps import drive
from mirror_assets.zones import LocalStore, Store
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landing.drops import NEW_SLICE, drop, mirrored, new_epoch, nothing_left
from mirror_assets_tests.landing.epochs import dropping, loading
from mirror_assets_tests.landing.faults import points, run_with
from mirror_assets_tests.landing.staging import (
    CHECKS,
    KEYS,
    TABLE,
    hex_id,
    land,
    land_next,
    landed_manifest,
    manifest_of,
    position_of,
    stage,
)
from mirror_assets_tests.landing.zone import landed
from mirror_assets_tests.zones.memory import MemoryStore

SECOND_EPOCH = CommitPosition(2, hex_id("second epoch"), generation=1, first_number=1, covered=-1)


def begun_epoch(store: Store) -> Manifest:
    """The manifest of a first epoch."""
    return land_next(store, last=7).manifest


def finish(store: Store, record: RebuildRecord) -> None:
    drive(advance_rebuild(TABLE, record, RebuildStep.FINISHED), store)


def test_a_rebuild_under_way_is_continued(store: LocalStore) -> None:
    begun_epoch(store)
    record = drive(begin_rebuild(TABLE), store)
    assert (record.epoch, record.step) == (2, RebuildStep.STAGING)
    moved = drive(advance_rebuild(TABLE, record, RebuildStep.LOADING), store)
    assert drive(begin_rebuild(TABLE), store) == moved == drive(read_rebuild(TABLE), store)


def test_each_rebuild_begins_an_epoch_of_its_own_even_when_the_folder_is_lost(store: LocalStore) -> None:
    assert drive(first_epoch(TABLE), store) == 1
    begun_epoch(store)
    first = drive(loading(TABLE), store)
    assert drive(first_epoch(TABLE), store) == first.epoch == 2
    finish(store, first)
    assert drive(first_epoch(TABLE), store) == 3
    second = drive(loading(TABLE), store)
    assert second.epoch == 3
    finish(store, second)


def test_a_manifest_that_cannot_be_read_does_not_hide_its_epoch(store: LocalStore) -> None:
    begun_epoch(store)
    finish(store, drive(loading(TABLE), store))
    land(store, stage(store, CommitPosition(3, hex_id("third"), 1, 1, -1), last=9))
    store.local_path(TABLE.manifest).write_bytes(b"{")
    store.delete(TABLE.rebuild_record)
    assert drive(begin_rebuild(TABLE), store).epoch == 4


def test_only_one_of_two_rebuilds_moves_the_record(store: LocalStore) -> None:
    record = drive(loading(TABLE), store)
    drive(advance_rebuild(TABLE, record, RebuildStep.RETURNING), store)
    for stale in (RebuildStep.RETURNING, RebuildStep.FINISHED, RebuildStep.STAGING):
        with raises_row(REBUILD_RUNNING, match="waiting for the table"):
            drive(advance_rebuild(TABLE, record, stale), store)


def test_a_rebuild_that_cannot_be_repaired_drops_again_under_the_next_epoch(store: LocalStore) -> None:
    record = drive(loading(TABLE), store)
    again = drive(advance_rebuild(TABLE, record, RebuildStep.STAGING), store)
    assert (again.epoch, again.step) == (record.epoch + 1, RebuildStep.STAGING)


def test_a_drop_takes_all_that_was_staged_of_ended_lives_and_leaves_snapshots_for_the_next(store: LocalStore) -> None:
    begun_epoch(store)
    unfinished = AttemptFolder(TABLE, 1, hex_id("unfinished"))
    store.create(unfinished.part("part-00000.parquet"), b"Spark is still writing")
    staged = stage(store, SECOND_EPOCH, last=9, attempt="snapshot")
    store.create(AttemptFolder(TABLE, 1, hex_id("spoilt")).record, b"{")
    for folder in (stage(store, position_of(store), last=8).folder.path, f"{TABLE.scratch}/junk"):
        store.create(f"{folder}/anything", b"")
    drive(drop_table_folder(TABLE, drive(dropping(TABLE), store)), store)
    assert {info.path for info in store.list(TABLE.scratch)} == {unfinished.path, staged.folder.path}
    assert store.folder_identity(TABLE.folder) is None


def test_a_lost_manifest_of_the_new_epoch_is_not_made_from_the_old_one(store: LocalStore) -> None:
    ended = begun_epoch(store)
    record = drive(loading(TABLE), store)
    land(store, stage(store, SECOND_EPOCH, last=9), rebuild_epoch=2)
    finish(store, record)
    store.create(TABLE.history(1, 99), encode(ended))
    store.delete(TABLE.manifest)
    current = drive(recover(TABLE), store)
    assert current is not None
    assert (current.manifest.epoch, current.manifest.covered) == (2, 9)


def test_declared_keys_that_come_late_are_an_error_and_not_overwritten(store: LocalStore) -> None:
    begun_epoch(store)
    drive(loading(TABLE), store)
    store.create(TABLE.metadata, metadata_bytes(["other"]))
    with raises_row(METADATA_DIFFERS):
        land(store, stage(store, SECOND_EPOCH, last=9), rebuild_epoch=2)
    assert manifest_of(store) is None


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
