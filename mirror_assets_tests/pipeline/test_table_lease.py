"""Who works on a table, and for how long others believe it."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.composition import Project, no_spark
from mirror_assets.config import load_config
from mirror_assets.landing.failures import read_failure
from mirror_assets.landing.lease import Lease, Process, read_lease, take_lease
from mirror_assets.landing.names import AttemptFolder
from mirror_assets.pipeline import table_lease as lease
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TableBusy
from mirror_assets.pipeline.liveness import this_process
from mirror_assets.pipeline.table_lease import holder, holder_now, leased
from mirror_assets.storage.errors import StoreUnavailable
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.pipeline.test_liveness import ended_process
from mirror_assets_tests.storage.memory import MemoryStore


@pytest.fixture
def context(tmp_path: Path) -> TableContext:
    """A table of a landing zone in memory; nothing of it starts Spark."""
    made = Lab(None, tmp_path)
    made.configure()
    return replace(made.context, store=MemoryStore())


def left_behind(context: TableContext, process: Process, seconds: float = 60) -> None:
    """A lease that nobody renews."""
    now = int(time.time() * 1000)
    made = Lease(subject=str(TABLE), run="gone", process=process, since_ms=now, until_ms=now + int(seconds * 1000))
    assert take_lease(context.store, TABLE.lease, made, lambda _: True) == made


def elsewhere() -> Process:
    return this_process().model_copy(update={"boot": "another machine", "host": "elsewhere"})


def test_a_table_has_a_holder_while_somebody_works_on_it(context: TableContext) -> None:
    with leased(context, "0815"):
        found = holder(context.store, TABLE)
        assert found is not None
        assert (found.run, found.process.pid) == ("0815", os.getpid())
    assert holder(context.store, TABLE) is None


def test_another_run_is_refused_and_the_same_one_is_not(context: TableContext) -> None:
    with leased(context, "1"):
        with pytest.raises(TableBusy, match=r"run 1 works on shop\.orders"), leased(context, "2"):
            pytest.fail("it was let in")
        with leased(context, "1"):
            pass


def test_who_waits_comes_next(context: TableContext) -> None:
    begun, end = threading.Event(), threading.Event()

    def other() -> None:
        with leased(context, "1"):
            begun.set()
            end.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(10)
    threading.Timer(0.1, end.set).start()
    with leased(context, "2", wait_seconds=10):
        assert end.is_set()
    thread.join()


def test_a_lease_of_another_machine_holds_until_it_expires(context: TableContext) -> None:
    left_behind(context, elsewhere())
    assert holder(context.store, TABLE) is not None
    left_behind(context, elsewhere(), seconds=-1)
    assert holder(context.store, TABLE) is None
    with leased(context, "2"):
        pass


def test_a_killed_process_of_this_machine_holds_nothing_and_reading_its_lease_writes_nothing(
    context: TableContext,
) -> None:
    left_behind(context, this_process(), seconds=-1800)
    assert holder(context.store, TABLE) is not None, "it lives, however late its renewal is"
    left_behind(context, ended_process())
    assert holder(context.store, TABLE) is None
    assert read_lease(context.store, TABLE.lease) is not None
    assert read_failure(context.store, TABLE) is None


@pytest.mark.parametrize("who", ["a scheduler", "the next run"])
def test_what_a_killed_run_did_not_complete_is_deleted(context: TableContext, who: str) -> None:
    left_behind(context, ended_process())
    begun = AttemptFolder(TABLE, 7, "0" * 32)
    context.store.create(begun.part("part-00000.parquet"), b"half a part")
    if who == "a scheduler":
        assert holder_now(context) is None
        assert read_lease(context.store, TABLE.lease) is None
    else:
        with leased(context, "2"):
            pass
    assert context.store.list(TABLE.scratch) == []
    failure = read_failure(context.store, TABLE)
    assert failure is not None
    assert "run gone ended while it worked on the table" in failure.message


def test_what_another_mirror_stages_beside_it_is_left_alone(tmp_path: Path) -> None:
    """Seen: both `mirror.yaml` of a folder staged in `./staging`, and each deleted the other's unfinished attempts."""
    ours, others = (_of_item(tmp_path, item) for item in (1, 2))
    begun = AttemptFolder(TABLE, 7, "0" * 32)
    for one in (ours, others):
        one.staging.create(begun.part("part-00000.parquet"), b"half a part")
    left_behind(ours, ended_process())
    assert holder_now(ours) is None
    assert ours.staging.list(TABLE.scratch) == []
    assert [info.name for info in others.staging.list(begun.parts)] == ["part-00000.parquet"]


def _of_item(folder: Path, item: int) -> TableContext:
    """The table in a mirror.yaml of this item of OneLake, whose landing zone is in memory."""
    guid = f"{item:08}-0000-0000-0000-000000000000"
    url = f"https://onelake.dfs.fabric.microsoft.com/{guid}/{guid}/Files/LandingZone"
    file = folder / f"mirror_{item}.yaml"
    file.write_text(
        f"landing_zone: {{onelake: {{url: '{url}', credential: managed_identity}}}}\n"
        f"tables: {{{TABLE}: {{source: ./orders, keys: [id]}}}}\n"
    )
    (made,) = Project.of(load_config(file), no_spark).tables()
    return replace(made, store=MemoryStore())


def test_it_is_renewed_as_long_as_the_work_goes_on(context: TableContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_RENEWED_AFTER_SECONDS", 0.01)
    with leased(context, "1"):
        first = read_lease(context.store, TABLE.lease)
        assert first is not None
        deadline = time.monotonic() + 10
        while (found := read_lease(context.store, TABLE.lease)) is not None and found.until_ms == first.until_ms:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_lease_that_cannot_be_read_is_nobodys(context: TableContext) -> None:
    context.store.create(TABLE.lease, b"{")
    assert holder(context.store, TABLE) is None
    with leased(context, "1"):
        assert holder(context.store, TABLE) is not None


def test_a_store_that_keeps_none_is_no_obstacle(context: TableContext) -> None:
    class Unavailable(MemoryStore):
        def create(self, path: str, data: bytes) -> str:
            raise StoreUnavailable(path, f"{len(data)} bytes are too many")

    with leased(replace(context, store=Unavailable()), "1"):
        pass
