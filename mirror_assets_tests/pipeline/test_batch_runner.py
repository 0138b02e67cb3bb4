"""Which run mirrors a batch, and when it knows that another does."""

from __future__ import annotations

import platform

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.lease import Lease
from mirror_assets.landing.names import batch_lease
from mirror_assets.pipeline import batch_runner
from mirror_assets.pipeline.batch_runner import (
    BatchRunner,
    batch_holder,
    batch_of,
    other_mirrors,
    tables_mirrored_twice,
)
from mirror_assets.pipeline.liveness import is_gone
from mirror_assets.storage.errors import StoreUnavailable
from mirror_assets_tests.storage.memory import MemoryStore


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "_RENEWED_AFTER_SECONDS", 0.0)


MIRROR = "mirror_assets of an instance"


def runner(store: MemoryStore, batch: int, run: str, mirror: str = MIRROR) -> BatchRunner:
    return BatchRunner(store, mirror, batch, run, "code", ("a", "b"))


def lease_of(store: MemoryStore) -> Lease:
    found = batch_holder(store, MIRROR, 0)
    assert found is not None
    return found


def test_the_run_that_took_over_last_mirrors_the_batch_until_it_leaves() -> None:
    store = MemoryStore()
    first, second, other_batch = runner(store, 0, "1"), runner(store, 0, "2"), runner(store, 1, "3")
    first.take_over()
    assert not first.is_replaced()
    other_batch.take_over()
    assert not first.is_replaced(), "batches are independent"
    second.take_over()
    assert first.is_replaced()
    first.leave()
    assert not second.is_replaced()
    taken = lease_of(store)
    assert (taken.run, is_gone(taken)) == ("2", False), "a run that was replaced does not end the other one's lease"
    second.leave()
    assert is_gone(lease_of(store))
    assert lease_of(store).since_ms == taken.since_ms


def test_mirrors_of_the_same_tables_see_each_other_and_replace_nobody() -> None:
    store = MemoryStore()
    ours, theirs = runner(store, 0, "1"), runner(store, 0, "2", "mirror_assets of a desk")
    ours.take_over()
    assert other_mirrors(store, MIRROR, 0, "ab") == []
    theirs.take_over()
    assert not ours.is_replaced()
    (found,) = other_mirrors(store, MIRROR, 0, "bc")
    assert found.run == "2"
    assert other_mirrors(store, MIRROR, 0, "c") == []
    theirs.leave()
    assert other_mirrors(store, MIRROR, 0, "ab") == []


def test_two_living_mirrors_of_one_table_are_named_and_others_are_not() -> None:
    store = MemoryStore()
    runner(store, 0, "1").take_over()
    BatchRunner(store, MIRROR, 1, "2", "code", ("c",)).take_over()
    assert tables_mirrored_twice(store) == []
    desk = BatchRunner(store, "mirror_assets of a desk", 0, "3", "code", ("b", "d"))
    desk.take_over()
    (told,) = tables_mirrored_twice(store)
    assert "(b)" in told
    assert "run 1 works on batch 0 of mirror_assets of an instance" in told
    assert "run 3 works on batch 0 of mirror_assets of a desk" in told
    assert f"on {platform.node()}" in told
    desk.leave()
    assert tables_mirrored_twice(store) == []


def test_of_mirrors_of_the_same_tables_that_began_at_once_the_oldest_run_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "_OTHERS_AFTER_SECONDS", 0.0)
    store = MemoryStore()
    runs = [runner(store, 0, run, f"mirror_assets of {run}") for run in ("1", "2", "3")]
    for run in reversed(runs):
        run.take_over()
    assert [run.is_replaced() for run in runs] == [False, True, True]
    for run in runs[1:]:
        run.leave()
    assert not runs[0].is_replaced()


def test_a_record_that_cannot_be_read_is_written_anew() -> None:
    store = MemoryStore()
    store.create(batch_lease(MIRROR, 0), b"{")
    assert batch_holder(store, MIRROR, 0) is None
    run = runner(store, 0, "1")
    run.take_over()
    assert not run.is_replaced()
    assert lease_of(store).run == "1"


def test_a_store_that_keeps_none_ends_no_run() -> None:
    class Unavailable(MemoryStore):
        def create(self, path: str, data: bytes) -> str:
            raise StoreUnavailable(path, f"{len(data)} bytes are too many")

    run = runner(Unavailable(), 0, "1")
    run.take_over()
    assert not run.is_replaced()
    run.leave()


@given(st.lists(st.integers()), st.integers(1, 8))
def test_every_table_is_in_one_batch(tables: list[int], batches: int) -> None:
    found = [batch_of(tables, number, batches) for number in range(batches)]
    assert sorted(table for batch in found for table in batch) == sorted(tables)
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_a_run_takes_over_from_one_that_renews_at_the_same_time() -> None:
    class Renewing(MemoryStore):
        """The other run renews its record between our reading and our writing, once."""

        renewals = 0

        def replace(self, path: str, data: bytes, etag: str) -> str:
            if b'"2"' in data and not self.renewals:
                self.renewals += 1
                super().replace(path, self.read(path, 9999).data, etag)
            return super().replace(path, data, etag)

    store = Renewing()
    first, second = runner(store, 0, "1"), runner(store, 0, "2")
    first.take_over()
    second.take_over()
    assert store.renewals == 1
    assert lease_of(store).run == "2"
    assert first.is_replaced()
