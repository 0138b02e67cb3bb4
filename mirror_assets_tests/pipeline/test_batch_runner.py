"""Which run mirrors a batch, and when it knows that another does."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.names import runner_record
from mirror_assets.landing.runner import Runner, read_runner
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline import batch_runner
from mirror_assets.pipeline.batch_runner import BatchRunner, batch_of, is_alive
from mirror_assets.storage.errors import StoreUnavailable
from mirror_assets_tests.storage.memory import MemoryStore


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "_RENEWED_AFTER_SECONDS", 0.0)


def runner_of(store: MemoryStore) -> Runner:
    found = drive(read_runner(0), store)
    assert found is not None
    return found


def test_the_run_that_took_over_last_stays() -> None:
    store = MemoryStore()
    first, second = BatchRunner(store, 0, "1", "code"), BatchRunner(store, 0, "2", "code")
    first.take_over()
    assert not first.is_replaced()
    second.take_over()
    assert first.is_replaced()
    assert not second.is_replaced()
    assert runner_of(store).run == "2"


def test_a_run_that_was_replaced_ends_nothing_of_the_other() -> None:
    store = MemoryStore()
    first, second = BatchRunner(store, 0, "1", "code"), BatchRunner(store, 0, "2", "code")
    first.take_over()
    second.take_over()
    first.leave()
    assert is_alive(runner_of(store))


def test_a_run_that_left_is_no_longer_alive_and_its_time_is_known() -> None:
    store = MemoryStore()
    run = BatchRunner(store, 0, "1", "code")
    run.take_over()
    before = runner_of(store)
    assert is_alive(before)
    run.leave()
    assert not is_alive(runner_of(store))
    assert runner_of(store).since_ms == before.since_ms


def test_batches_know_nothing_of_each_other() -> None:
    store = MemoryStore()
    first, second = BatchRunner(store, 0, "1", "code"), BatchRunner(store, 1, "2", "code")
    first.take_over()
    second.take_over()
    assert not first.is_replaced()


def test_a_killed_process_of_this_machine_is_not_alive() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    store = MemoryStore()
    BatchRunner(store, 0, "1", "code").take_over()
    alive = runner_of(store)
    assert (alive.host, alive.pid) == (platform.node(), os.getpid())
    assert not is_alive(alive.model_copy(update={"pid": process.pid}))
    assert is_alive(alive.model_copy(update={"pid": process.pid, "host": "elsewhere"}))


def test_a_record_that_cannot_be_read_is_written_anew() -> None:
    store = MemoryStore()
    store.create(runner_record(0), b"{")
    assert drive(read_runner(0), store) is None
    run = BatchRunner(store, 0, "1", "code")
    run.take_over()
    assert not run.is_replaced()
    assert runner_of(store).run == "1"


def test_a_store_that_keeps_none_ends_no_run() -> None:
    class Unavailable(MemoryStore):
        def create(self, path: str, data: bytes) -> str:
            raise StoreUnavailable(path, f"{len(data)} bytes are too many")

    run = BatchRunner(Unavailable(), 0, "1", "code")
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
    first, second = BatchRunner(store, 0, "1", "code"), BatchRunner(store, 0, "2", "code")
    first.take_over()
    second.take_over()
    assert store.renewals == 1
    assert runner_of(store).run == "2"
    assert first.is_replaced()
