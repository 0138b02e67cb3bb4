"""Which run mirrors a batch, and when it ends."""

from __future__ import annotations

import platform

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.lease import Lease
from mirror_assets.landing.names import batch_lease, heartbeat_path
from mirror_assets.pipeline import batch_runner
from mirror_assets.pipeline.batch_runner import (
    BatchRunner,
    batch_holder,
    batch_of,
    has_runs,
    other_mirrors,
    request_end,
    tables_mirrored_twice,
)
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets_tests.zones.memory import MemoryStore


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "_READ_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(batch_runner, "_OTHERS_AFTER_SECONDS", 0.0)


MIRROR = "mirror_assets of an instance"


def runner(store: MemoryStore, batch: int, run: str, mirror: str = MIRROR) -> BatchRunner:
    return BatchRunner(store, mirror, batch, run, "code", ("a", "b"))


def lease_of(store: MemoryStore) -> Lease:
    found = batch_holder(store, MIRROR, 0)
    assert found is not None
    return found


def test_the_first_run_mirrors_the_batch_until_it_ends_and_a_second_one_ends_at_once() -> None:
    store = MemoryStore()
    first, second = runner(store, 0, "1"), runner(store, 0, "2")
    other_batch = BatchRunner(store, MIRROR, 1, "3", "code", ("c",))
    with first.running(), other_batch.running():
        assert (first.reason_to_end(), other_batch.reason_to_end()) == (None, None), "batches are independent"
        with second.running():
            told = second.reason_to_end()
        assert told is not None
        assert told.startswith("run 1 works on batch 0 of mirror_assets of an instance")
        assert first.reason_to_end() is None
        assert has_runs(store)
    assert not has_runs(store)
    assert lease_of(store).run == "1", "it says when the last run began"
    assert store.head(heartbeat_path("1")) is None
    with second.running():
        assert second.reason_to_end() is None
        assert lease_of(store).run == "2"


def test_a_run_ends_when_the_sensor_has_newer_definitions() -> None:
    store = MemoryStore()
    run = runner(store, 0, "1")
    with run.running():
        assert run.reason_to_end() is None
        request_end(store, lease_of(store), batch_lease(MIRROR, 0), "code")
        assert run.reason_to_end() is None, "those are its own"
        request_end(store, lease_of(store), batch_lease(MIRROR, 0), "newer")
        assert run.reason_to_end() == "settings, code or tables have changed"
    following = runner(store, 0, "2")
    with following.running():
        assert following.reason_to_end() is None


def test_mirrors_of_the_same_tables_see_each_other() -> None:
    store = MemoryStore()
    ours, theirs = runner(store, 0, "1"), runner(store, 0, "2", "mirror_assets of a desk")
    with ours.running():
        assert ours.reason_to_end() is None
        assert other_mirrors(store, MIRROR, 0, "ab") == []
        theirs._since_ms = ours._since_ms + 1
        with theirs.running():
            told = theirs.reason_to_end()
            assert told is not None
            assert told.startswith("another Dagster instance mirrors the same tables: run 1 works")
            assert ours.reason_to_end() is None
            (found,) = other_mirrors(store, MIRROR, 0, "bc")
            assert found.run == "2"
            assert other_mirrors(store, MIRROR, 0, "c") == []
        assert other_mirrors(store, MIRROR, 0, "ab") == []


def test_two_living_mirrors_of_one_table_are_named_and_others_are_not() -> None:
    store = MemoryStore()
    desk = BatchRunner(store, "mirror_assets of a desk", 0, "3", "code", ("b", "d"))
    with runner(store, 0, "1").running(), BatchRunner(store, MIRROR, 1, "2", "code", ("c",)).running():
        runner(store, 0, "1").reason_to_end()
        BatchRunner(store, MIRROR, 1, "2", "code", ("c",)).reason_to_end()
        assert tables_mirrored_twice(store) == []
        with desk.running():
            assert desk.reason_to_end() is None, "only some tables are the same"
            (told,) = tables_mirrored_twice(store)
        assert "(b)" in told
        assert "run 1 works on batch 0 of mirror_assets of an instance" in told
        assert "run 3 works on batch 0 of mirror_assets of a desk" in told
        assert f"on {platform.node()}" in told
        assert tables_mirrored_twice(store) == []


def test_of_mirrors_of_the_same_tables_that_began_at_once_the_oldest_run_stays() -> None:
    store = MemoryStore()
    runs = [runner(store, 0, run, f"mirror_assets of {run}") for run in ("1", "2", "3")]
    for number, run in enumerate(runs):
        run._since_ms = number
    first, second, third = runs
    with first.running(), second.running(), third.running():
        third.reason_to_end()
        second.reason_to_end()
        assert [run.reason_to_end() is None for run in runs] == [True, False, False]


def test_an_unreadable_lease_is_replaced() -> None:
    store = MemoryStore()
    store.create(batch_lease(MIRROR, 0), b"{")
    assert batch_holder(store, MIRROR, 0) is None
    run = runner(store, 0, "1")
    with run.running():
        assert run.reason_to_end() is None
        assert lease_of(store).run == "1"


def test_a_store_that_keeps_none_ends_no_run_and_gets_the_lease_later() -> None:
    class Unavailable(MemoryStore):
        is_full = True

        def create(self, path: str, data: bytes) -> str:
            if self.is_full:
                raise STORE_UNAVAILABLE(path=path, why=f"{len(data)} bytes are too many")
            return super().create(path, data)

    store = Unavailable()
    run = runner(store, 0, "1")
    with run.running():
        assert run.reason_to_end() is None
        assert batch_holder(store, MIRROR, 0) is None
        store.is_full = False
        assert run.reason_to_end() is None
        assert lease_of(store).run == "1"


@given(st.lists(st.integers()), st.integers(1, 8))
def test_every_table_is_in_one_batch(tables: list[int], batches: int) -> None:
    found = [batch_of(tables, number, batches) for number in range(batches)]
    assert sorted(table for batch in found for table in batch) == sorted(tables)
    assert max(map(len, found)) - min(map(len, found)) <= 1
