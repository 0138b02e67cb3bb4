"""Who works on a table, and for how long others believe it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.composition import Project, no_spark
from mirror_assets.config.load import load_config
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.failures import read_failure
from mirror_assets.landing.lease import Lease, Process, read_lease, take_lease, write_heartbeat
from mirror_assets.landing.names import AttemptFolder, heartbeat_path
from mirror_assets.pipeline import heartbeat, liveness
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TABLE_BUSY
from mirror_assets.pipeline.heartbeat import beating
from mirror_assets.pipeline.table_lease import holder, holder_now, leased
from mirror_assets.zones import Store
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.pipeline.test_liveness import elsewhere, ended_process, living_process
from mirror_assets_tests.zones.memory import MemoryStore


@pytest.fixture
def context(tmp_path: Path) -> TableContext:
    """A table of a landing zone in memory; nothing of it starts Spark."""
    made = Lab(None, tmp_path)
    made.configure()
    return replace(made.context, store=MemoryStore())


def left_behind(context: TableContext, process: Process) -> None:
    """The lease and the heartbeat of a run that writes no more heartbeats."""
    write_heartbeat(context.store, "gone", process)
    made = Lease(subject=str(TABLE), run="gone", process=process, since_ms=int(time.time() * 1000))
    assert take_lease(context.store, TABLE.lease, made, lambda _: True) == made


def test_a_table_has_a_holder_while_a_process_works_on_it(context: TableContext) -> None:
    with leased(context, "0815"):
        found = holder(context.store, TABLE)
        assert found is not None
        assert (found.run, found.process.pid) == ("0815", os.getpid())
    assert holder(context.store, TABLE) is None


def test_another_run_is_refused_and_the_same_one_is_not(context: TableContext) -> None:
    with leased(context, "1"):
        with raises_row(TABLE_BUSY, match=r"run 1 works on shop\.orders"), leased(context, "2"):
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


def test_a_lease_of_another_machine_holds_while_its_heartbeat_changes(
    context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_behind(context, elsewhere())
    for _ in range(3):
        monkeypatch.setattr(liveness, "SILENT_SECONDS", 0.0)
        assert holder(context.store, TABLE) is None, "the heartbeat is the same as before"
        monkeypatch.setattr(liveness, "SILENT_SECONDS", 300.0)
        write_heartbeat(context.store, "gone", elsewhere())
        assert holder(context.store, TABLE) is not None
    with raises_row(TABLE_BUSY), leased(context, "2"):
        pytest.fail("it was let in")
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 0.0)
    with leased(context, "2"):
        failure = read_failure(context.store, TABLE)
    assert failure is not None
    assert failure.code is ErrorCode.RUN_KILLED


def test_a_released_lease_that_the_store_did_not_delete_blocks_no_process(context: TableContext) -> None:
    """Seen: after one refused deletion, the process that had released the lease left the table alone for 66 minutes."""
    store = Refusing()
    stubborn = replace(context, store=store)
    with leased(stubborn, "1"):
        store.refuses = True
    assert read_lease(store, TABLE.lease) is not None
    assert holder(store, TABLE) is None
    assert holder_now(stubborn) is None
    store.refuses = False
    assert holder_now(stubborn) is None
    assert read_lease(store, TABLE.lease) is None
    assert read_failure(store, TABLE) is None, "the run was not killed"


def test_a_refused_deletion_is_retried_while_the_run_holds_others(
    context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "_BEAT_SECONDS", 0.01)
    store = Refusing()
    with beating(store, "1", "_leases/_batch-0.json"):
        store.refuses = True
        with leased(replace(context, store=store), "1"):
            pass
        time.sleep(0.1)
        assert read_lease(store, TABLE.lease) is not None
        store.refuses = False
        wait_for(lambda: read_lease(store, TABLE.lease) is None)
    assert not heartbeats(store)


class Refusing(MemoryStore):
    """A store that can refuse to delete files."""

    refuses = False

    def delete(self, path: str) -> None:
        if self.refuses:
            raise STORE_UNAVAILABLE(path=path, why="503")
        super().delete(path)


def heartbeats(store: Store) -> list[str]:
    return [info.name for info in store.list("_leases") if info.name.startswith("_run-")]


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_another_run_of_the_process_is_respected_while_it_works(context: TableContext) -> None:
    with leased(context, "1"):
        found = holder_now(context)
        assert found is not None
        assert found.run == "1"
    assert holder_now(context) is None


def test_the_last_of_two_steps_deletes_the_lease(context: TableContext) -> None:
    with leased(context, "1"):
        with leased(context, "1"):
            pass
        assert holder(context.store, TABLE) is not None
        assert heartbeats(context.store) == ["_run-1.json"]
    assert read_lease(context.store, TABLE.lease) is None
    assert not heartbeats(context.store)


def test_a_busy_lease_is_not_deleted_by_the_run_that_was_refused(context: TableContext) -> None:
    left_behind(context, elsewhere())
    with raises_row(TABLE_BUSY), leased(context, "2"):
        pytest.fail("it was let in")
    assert read_lease(context.store, TABLE.lease) is not None
    assert heartbeats(context.store) == ["_run-gone.json"]


def test_a_lease_of_a_living_process_without_a_heartbeat_was_released(context: TableContext) -> None:
    left_behind(context, living_process())
    assert holder(context.store, TABLE) is not None
    context.store.delete(heartbeat_path("gone"))
    assert holder(context.store, TABLE) is None
    with leased(context, "2"):
        assert read_failure(context.store, TABLE) is None, "a killed run would have left its heartbeat"


def test_a_killed_process_of_this_machine_holds_nothing_and_reading_its_lease_writes_nothing(
    context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 0.0)
    left_behind(context, living_process())
    assert holder(context.store, TABLE) is not None, "it lives, however late its heartbeat is"
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


def test_a_lease_that_cannot_be_read_is_nobodys(context: TableContext) -> None:
    context.store.create(TABLE.lease, b"{")
    assert holder(context.store, TABLE) is None
    with leased(context, "1"):
        assert holder(context.store, TABLE) is not None


def test_a_store_that_keeps_none_is_no_obstacle(context: TableContext) -> None:
    class Unavailable(MemoryStore):
        def create(self, path: str, data: bytes) -> str:
            raise STORE_UNAVAILABLE(path=path, why=f"{len(data)} bytes are too many")

    with leased(replace(context, store=Unavailable()), "1"):
        pass
