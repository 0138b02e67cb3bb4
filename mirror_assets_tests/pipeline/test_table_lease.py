"""Who works on a table, and for how long others believe it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import time

import pytest

from mirror_assets.landing.lease import Lease, read_lease, take_lease
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline import table_lease as lease
from mirror_assets.pipeline.errors import TableBusy
from mirror_assets.pipeline.table_lease import holder, leased
from mirror_assets.storage.errors import StoreUnavailable
from mirror_assets_tests.storage.memory import MemoryStore

TABLE = TableName("shop", "orders")


def left_behind(store: MemoryStore, host: str = "elsewhere", pid: int = 1, seconds: float = 60) -> None:
    """A lease that nobody renews."""
    until = int((time.time() + seconds) * 1000)
    made = Lease(table=str(TABLE), run="gone", host=host, pid=pid, until_ms=until)
    assert drive(take_lease(TABLE, made, lambda _: True), store) == made


def test_a_table_has_a_holder_while_somebody_works_on_it() -> None:
    store = MemoryStore()
    with leased(store, TABLE, "0815"):
        found = holder(store, TABLE)
        assert found is not None
        assert (found.run, found.pid) == ("0815", os.getpid())
    assert holder(store, TABLE) is None


def test_another_run_is_refused_and_the_same_one_is_not() -> None:
    store = MemoryStore()
    with leased(store, TABLE, "1"):
        with pytest.raises(TableBusy, match=r"run 1 works on shop\.orders"), leased(store, TABLE, "2"):
            pytest.fail("it was let in")
        with leased(store, TABLE, "1"):
            pass


def test_who_waits_comes_next() -> None:
    store, begun, end = MemoryStore(), threading.Event(), threading.Event()

    def other() -> None:
        with leased(store, TABLE, "1"):
            begun.set()
            end.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(10)
    threading.Timer(0.1, end.set).start()
    with leased(store, TABLE, "2", wait_seconds=10):
        assert end.is_set()
    thread.join()


def test_a_lease_that_is_over_is_anybodys() -> None:
    store = MemoryStore()
    left_behind(store, seconds=-1)
    assert holder(store, TABLE) is None
    with leased(store, TABLE, "2"):
        pass


def test_a_killed_process_of_this_machine_holds_nothing() -> None:
    store = MemoryStore()
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    left_behind(store, host=platform.node(), pid=process.pid)
    assert holder(store, TABLE) is None
    left_behind(store, host=platform.node(), pid=os.getpid())
    assert holder(store, TABLE) is not None


def test_it_is_renewed_as_long_as_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_RENEWED_AFTER_SECONDS", 0.01)
    store = MemoryStore()
    with leased(store, TABLE, "1"):
        first = drive(read_lease(TABLE), store)
        assert first is not None
        deadline = time.monotonic() + 10
        while (found := drive(read_lease(TABLE), store)) is not None and found.until_ms == first.until_ms:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_lease_that_cannot_be_read_is_nobodys() -> None:
    store = MemoryStore()
    store.create(TABLE.lease, b"{")
    assert holder(store, TABLE) is None
    with leased(store, TABLE, "1"):
        assert holder(store, TABLE) is not None


def test_a_store_that_keeps_none_is_no_obstacle() -> None:
    class Unavailable(MemoryStore):
        def create(self, path: str, data: bytes) -> str:
            raise StoreUnavailable(path, f"{len(data)} bytes are too many")

    with leased(Unavailable(), TABLE, "1"):
        pass
