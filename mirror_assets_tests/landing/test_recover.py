"""Recovery: what is finished, what is restored, and what is refused because it can't be decided."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mirror_assets.errors import UnknownOutcome
from mirror_assets.landing.errors import (
    FOREIGN_FILE,
    MANIFEST_LOST,
    REBUILD_RUNNING,
    STAGED_FILE_LOST,
    LostRace,
    ManifestCorrupt,
)
from mirror_assets.landing.generations import landed_numbers
from mirror_assets.landing.names import HISTORY, PROCESSED, READY_TO_DELETE
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild, drop_table_folder
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.zones import FileInfo, LocalStore
from mirror_assets.zones.errors import REQUEST_UNKNOWN
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landing.staging import TABLE, land_next, landed_manifest, manifest_of
from mirror_assets_tests.landing.zone import landed, landed_paths, require_exactly_once


def unland(store: LocalStore, number: int) -> Path:
    """Put a landing file back to where it was staged, as before its rename; its staged path."""
    entry = next(entry for entry in landed_manifest(store).entries if entry.number == number)
    staged = store.local_path(entry.staged)
    staged.parent.mkdir(parents=True, exist_ok=True)
    store.local_path(TABLE.landing_file(number)).rename(staged)
    return staged


@pytest.fixture
def half_landed(store: LocalStore) -> LocalStore:
    """A zone whose publisher died after the first rename of the second slice's three."""
    land_next(store, last=7, parts=2)
    land_next(store, last=8, parts=3)
    for number in (5, 4):
        unland(store, number)
    return store


def require_recovered(store: LocalStore) -> None:
    require_exactly_once(store, [(7, 0), (7, 1), (8, 0), (8, 1), (8, 2)], covered=8)


@pytest.mark.parametrize("lost", [4, 5])
def test_committed_file_that_is_gone_stops_everything(half_landed: LocalStore, lost: int) -> None:
    entry = landed_manifest(half_landed).entries[lost - 3]
    half_landed.delete(entry.staged)
    for _ in range(2):
        with raises_row(STAGED_FILE_LOST) as stopped:
            drive(recover(TABLE), half_landed)
        assert (stopped.value.facts["number"], stopped.value.facts["staged"]) == (lost, entry.staged)
    assert [number for number, _ in landed(half_landed)] == list(range(1, lost))


def test_committed_file_that_was_rewritten_stops_everything(half_landed: LocalStore) -> None:
    half_landed.local_path(landed_manifest(half_landed).entries[1].staged).write_bytes(b"other rows")
    with raises_row(STAGED_FILE_LOST):
        drive(recover(TABLE), half_landed)
    assert [number for number, _ in landed(half_landed)] == [1, 2, 3]


def test_foreign_file_in_the_way_of_a_recovery(half_landed: LocalStore) -> None:
    foreign = half_landed.local_path(TABLE.landing_file(4))
    foreign.write_bytes(b"")
    with raises_row(FOREIGN_FILE):
        drive(recover(TABLE), half_landed)
    assert foreign.read_bytes() == b""
    foreign.unlink()
    drive(recover(TABLE), half_landed)
    require_recovered(half_landed)


def test_copy_of_our_own_file_at_its_number_is_taken_for_landed(half_landed: LocalStore) -> None:
    """A store whose rename copies first and then loses the reply leaves both."""
    staged = half_landed.local_path(landed_manifest(half_landed).entries[1].staged)
    shutil.copy(staged, half_landed.local_path(TABLE.landing_file(4)))
    drive(recover(TABLE), half_landed)
    require_recovered(half_landed)


def test_a_foreign_file_that_disappears_during_its_check_does_not_stop_recovery(
    half_landed: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign, real = half_landed.local_path(TABLE.landing_file(4)), half_landed.open
    foreign.write_bytes(b"not ours")

    def go_first(path: str) -> object:
        foreign.unlink(missing_ok=True)
        monkeypatch.setattr(half_landed, "open", real)
        return real(path)

    monkeypatch.setattr(half_landed, "open", go_first)
    drive(recover(TABLE), half_landed)
    require_recovered(half_landed)


def test_rename_without_an_answer_is_asked_again_and_then_goes_up(
    half_landed: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[str] = []

    def never_answer(source: str, _target: str, _etag: str) -> None:
        requested.append(source)
        raise REQUEST_UNKNOWN(path=source, why="the line is dead")

    with monkeypatch.context() as patch:
        patch.setattr(half_landed, "rename", never_answer)
        with pytest.raises(UnknownOutcome):
            drive(recover(TABLE), half_landed)
    assert len(requested) > 1
    assert len(set(requested)) == 1
    drive(recover(TABLE), half_landed)
    require_recovered(half_landed)


@pytest.mark.parametrize("keep", [0, 1])
def test_manifest_and_newest_generation_deleted(store: LocalStore, keep: int) -> None:
    land_next(store, last=7)
    land_next(store, last=8)
    store.delete(TABLE.manifest)
    for generation in (1, 2)[keep:]:
        store.delete(TABLE.history(1, generation))
    before = landed_paths(store)
    with raises_row(MANIFEST_LOST):
        drive(recover(TABLE), store)
    assert manifest_of(store) is None
    assert landed_paths(store) == before


@pytest.mark.parametrize("keep", [0, 1])
def test_generations_that_a_rebuild_deletes_during_recovery_are_not_reported_as_lost(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, keep: int
) -> None:
    land_next(store, last=7)
    land_next(store, last=8)
    store.delete(TABLE.manifest)
    for generation in (1, 2)[keep:]:
        store.delete(TABLE.history(1, generation))
    listed = store.list

    def be_rebuilt(folder: str) -> list[FileInfo]:
        monkeypatch.setattr(store, "list", listed)
        drive(begin_rebuild(TABLE), store)
        return listed(folder)

    monkeypatch.setattr(store, "list", be_rebuilt)
    with pytest.raises(LostRace):
        drive(recover(TABLE), store)


@pytest.mark.parametrize("where", ["manifest", "generation", "rebuild record"])
def test_corrupt_control_file_stops(store: LocalStore, where: str) -> None:
    land_next(store, last=7)
    if where == "manifest":
        store.local_path(TABLE.manifest).write_bytes(b"{}")
    elif where == "generation":
        store.delete(TABLE.manifest)
        store.local_path(TABLE.history(1, 1)).write_bytes(b"")
    else:
        store.create(TABLE.rebuild_record, b"null")
    with pytest.raises(ManifestCorrupt):
        drive(recover(TABLE), store)
    assert landed(store) == [(1, (7, 0))]


def test_lost_history_is_kept_again(store: LocalStore) -> None:
    land_next(store, last=7)
    shutil.rmtree(store.local_path(f"{TABLE.folder}/{HISTORY}"))
    drive(recover(TABLE), store)
    require_exactly_once(store, [(7, 0)], covered=7)


def test_rebuild_lets_only_itself_through(store: LocalStore) -> None:
    land_next(store, last=7)
    record = drive(begin_rebuild(TABLE), store)
    for epoch in (None, 1, 2, 3):
        with raises_row(REBUILD_RUNNING, match="staging"):
            drive(recover(TABLE, epoch), store)
    record = drive(advance_rebuild(TABLE, record, RebuildStep.DROPPING), store)
    for epoch in (None, 1, 2, 3):
        with raises_row(REBUILD_RUNNING, match="dropping"):
            drive(recover(TABLE, epoch), store)
    drive(drop_table_folder(TABLE, record), store)
    record = drive(advance_rebuild(TABLE, record, RebuildStep.LOADING), store)
    for epoch in (None, 1, 3):
        with raises_row(REBUILD_RUNNING, match="loading"):
            drive(recover(TABLE, epoch), store)
    assert drive(recover(TABLE, 2), store) is None
    drive(advance_rebuild(TABLE, record, RebuildStep.FINISHED), store)
    assert drive(recover(TABLE), store) is None


@pytest.mark.parametrize("folder", [TABLE.folder, f"{TABLE.folder}/{PROCESSED}", f"{TABLE.folder}/{READY_TO_DELETE}"])
def test_numbers_are_listed_in_all_folders_of_the_service(store: LocalStore, folder: str) -> None:
    assert drive(landed_numbers(TABLE), store) == []
    store.create(f"{TABLE.folder}/00000000000000000003.parquet", b"")
    store.create(f"{folder}/00000000000000000012.parquet", b"")
    store.create(f"{folder}/_00000000000000000099.parquet", b"")
    store.create(f"{folder}/other.parquet", b"")
    assert sorted(drive(landed_numbers(TABLE), store)) == [3, 12]


def test_a_file_that_moves_between_two_listings_is_listed(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service moves files one way, and the folders are listed that way."""
    store.create(f"{TABLE.folder}/{PROCESSED}/00000000000000000001.parquet", b"")
    store.create(f"{TABLE.folder}/{READY_TO_DELETE}/_x", b"")
    path = f"{TABLE.folder}/{PROCESSED}/00000000000000000002.parquet"
    etag = store.create(path, b"")
    listed, listings = store.list, 0

    def move_on_after_the_first(folder: str) -> list[FileInfo]:
        nonlocal listings
        found, listings = listed(folder), listings + 1
        if listings == 1:
            store.rename(path, f"{TABLE.folder}/{READY_TO_DELETE}/00000000000000000002.parquet", etag)
        return found

    monkeypatch.setattr(store, "list", move_on_after_the_first)
    assert sorted(drive(landed_numbers(TABLE), store)) == [1, 2]
    assert listings == 3
