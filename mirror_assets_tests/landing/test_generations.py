"""Rolled-up history: bounded, and as good as the generations that it holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirror_assets.landing.errors import MANIFEST_LOST
from mirror_assets.landing.format import Manifest, encode
from mirror_assets.landing.generations import Generation, list_history
from mirror_assets.landing.names import PROCESSED, HistoryRange
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.verify.landed import HistoryReader, file_continuity
from mirror_assets.zones import Store
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landing.schedules import roll_ups_of
from mirror_assets_tests.landing.staging import TABLE, land_next, landed_manifest, position_of
from mirror_assets_tests.landing.zone import consume
from mirror_assets_tests.zones.memory import MemoryStore

SIZES = {"GENERATIONS": 4, "KEPT": 2, "FILES": 6}


@pytest.fixture
def small() -> Iterator[None]:
    with roll_ups_of(SIZES):
        yield


def land(store: Store, parts: int = 1, generations: int = 1) -> list[Manifest]:
    """Land this many more generations; their manifests."""
    return [land_next(store, position_of(store).covered + 1, parts).manifest for _ in range(generations)]


def sweep(store: Store) -> None:
    """What the service does with what it has put aside, days later."""
    for info in store.list(f"{TABLE.folder}/{PROCESSED}"):
        store.delete(info.path)


def ranges(store: Store) -> list[tuple[int, int]]:
    """First and last generation of each file of the history."""
    kept = (HistoryRange.parse(info.name) for info in store.list(TABLE.history_folder))
    return sorted((one.first, one.last) for one in kept if one)


def generations(store: Store) -> tuple[Generation, ...]:
    listed = drive(list_history(TABLE, landed_manifest(store).epoch), store)
    return tuple(HistoryReader(store, TABLE, landed_manifest(store), listed).generations())


@example(parts=[0, 3, 3, *[0] * 10, 3, 3, *[0] * 9], served=set(), swept=set())  # a roll-up of one generation
@given(
    parts=st.lists(st.integers(0, 3), min_size=1, max_size=30),
    served=st.sets(st.integers(0, 29)),
    swept=st.sets(st.integers(0, 29)),
)
def test_every_file_is_recognised_and_little_is_kept(parts: list[int], served: set[int], swept: set[int]) -> None:
    """Whatever lands, and whenever the service puts files aside and deletes them."""
    store, landed = MemoryStore(), []
    with roll_ups_of(SIZES):
        for turn, count in enumerate(parts):
            landed += land(store, count)
            if turn in served:
                consume(store)
            if turn in swept:
                sweep(store)
            assert file_continuity(store, TABLE, None).problems == ()
    expected = {one.generation: Generation.of(one) for one in landed}
    kept = generations(store)
    assert all(expected[one.generation] == one for one in kept)
    assert [one.generation for one in kept[-SIZES["KEPT"] :]] == list(expected)[-SIZES["KEPT"] :]
    listed = [HistoryRange.parse(info.name) for info in store.list(TABLE.history_folder)]
    alone = [one for one in listed if one is not None and not one.is_roll_up and one.first > 1]
    assert len(alone) < SIZES["GENERATIONS"] * 2 + SIZES["KEPT"]


@pytest.mark.usefixtures("small")
def test_old_generations_go_into_one_file_and_the_newest_and_the_first_stay(store: Store) -> None:
    landed = land(store, generations=8)
    assert ranges(store) == [(number, number) for number in range(1, 9)]
    landed += land(store)
    assert ranges(store) == [(1, 1), (1, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9)]
    assert generations(store) == tuple(map(Generation.of, landed))
    assert file_continuity(store, TABLE, None).problems == ()


@pytest.mark.usefixtures("small")
def test_a_roll_up_with_many_files_ends_early(store: Store) -> None:
    land(store, parts=4, generations=9)
    assert [kept for kept in ranges(store) if kept[0] != kept[1]] == [(1, 2), (3, 4), (5, 6)]


@pytest.mark.usefixtures("small")
def test_a_roll_up_goes_when_none_of_its_files_is_anywhere(store: Store) -> None:
    land(store, generations=9)
    consume(store)
    land(store, generations=4)
    assert (1, 4) in ranges(store)
    sweep(store)
    land(store, generations=4)
    assert [kept for kept in ranges(store) if kept[0] != kept[1]] == [(9, 12)]
    assert file_continuity(store, TABLE, None).problems == ()


@pytest.mark.usefixtures("small")
def test_what_a_late_request_puts_back_counts_for_nothing_and_goes(store: Store) -> None:
    landed = land(store, generations=9)
    store.create(TABLE.history(1, 3), encode(landed[2]))
    assert file_continuity(store, TABLE, None).problems == ()
    store.delete(TABLE.manifest)
    restored = drive(recover(TABLE), store)
    assert restored is not None
    assert restored.manifest == landed[-1]
    land(store, generations=4)
    assert (3, 3) not in ranges(store)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("content", [None, b"{"])
def test_a_lost_or_unreadable_generation_stops_the_roll_up(store: Store, content: bytes | None) -> None:
    land(store, generations=3)
    store.delete(TABLE.history(1, 2))
    if content is not None:
        store.create(TABLE.history(1, 2), content)
    land(store, generations=7)
    assert ranges(store) == [(number, number) for number in range(1, 11) if number != 2 or content]
    if content is None:
        assert f"{TABLE.history(1, 2)} is missing" in file_continuity(store, TABLE, None).problems


@pytest.mark.usefixtures("small")
def test_a_roll_up_that_is_not_what_would_be_written_keeps_its_generations(store: Store) -> None:
    land(store, generations=8)
    store.create(TABLE.roll_up(1, 1, 4), b"somebody else's")
    land(store)
    assert (2, 2) in ranges(store)


@pytest.mark.usefixtures("small")
def test_a_roll_up_that_was_changed_is_found_by_the_hash_in_the_next(store: Store) -> None:
    land(store, generations=13)
    path = TABLE.roll_up(1, 1, 4)
    content = store.read(path, 1 << 20)
    store.replace(path, content.data.replace(b'"covered":2', b'"covered":9'), content.etag)
    problems = file_continuity(store, TABLE, None).problems
    assert f"{path} is not what it was when {TABLE.roll_up(1, 5, 8)} was written" in problems


@pytest.mark.usefixtures("small")
def test_without_manifest_and_newest_generations_nothing_is_made_up(store: Store) -> None:
    land(store, parts=0, generations=9)
    store.delete(TABLE.manifest)
    for number in range(5, 10):
        store.delete(TABLE.history(1, number))
    store.delete(TABLE.history(1, 1))
    with raises_row(MANIFEST_LOST):
        drive(recover(TABLE), store)
