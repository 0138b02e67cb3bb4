"""Which run works on a table, or mirrors a batch, and when others may take over."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.names import AttemptFolder, batch_lease, heartbeat_path
from mirror_assets.landing.run_records import Lease, Process, read_failure, read_lease, take_lease, write_heartbeat
from mirror_assets.pipeline import leases, liveness
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TABLE_BUSY
from mirror_assets.pipeline.leases import (
    BatchRunner,
    batch_holder,
    has_runs,
    holder,
    holder_now,
    leased,
    other_mirrors,
    request_end,
    tables_mirrored_twice,
)
from mirror_assets.pipeline.liveness import beating
from mirror_assets.pipeline.spark_sessions import no_spark
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
        assert holder_now(context) == found
    assert holder(context.store, TABLE) is None
    assert holder_now(context) is None


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
    assert failure.code == ErrorCode.RUN_KILLED


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
    monkeypatch.setattr(liveness, "_BEAT_SECONDS", 0.01)
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


def test_another_run_is_refused_and_the_last_step_of_the_same_one_deletes_the_lease(context: TableContext) -> None:
    with leased(context, "1"):
        with raises_row(TABLE_BUSY, match=r"run 1 works on shop\.orders"), leased(context, "2"):
            pytest.fail("it was let in")
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
    (made,) = compose(load_config(file), no_spark).tables()
    return replace(made, store=MemoryStore())


def test_a_lease_that_cannot_be_read_is_nobodys(context: TableContext) -> None:
    context.store.create(TABLE.lease, b"{")
    assert holder(context.store, TABLE) is None
    with leased(context, "1"):
        assert holder(context.store, TABLE) is not None


class Unavailable(MemoryStore):
    """A store that stores no new file while it is full."""

    is_full = True

    def create(self, path: str, data: bytes) -> str:
        if self.is_full:
            raise STORE_UNAVAILABLE(path=path, why=f"{len(data)} bytes are too many")
        return super().create(path, data)


def test_a_store_that_keeps_none_is_no_obstacle(context: TableContext) -> None:
    with leased(replace(context, store=Unavailable()), "1"):
        pass


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_READ_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(leases, "_OTHERS_AFTER_SECONDS", 0.0)


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


def test_a_store_that_keeps_none_ends_no_run_and_gets_the_lease_later() -> None:
    store = Unavailable()
    run = runner(store, 0, "1")
    with run.running():
        assert run.reason_to_end() is None
        assert batch_holder(store, MIRROR, 0) is None
        store.is_full = False
        assert run.reason_to_end() is None
        assert lease_of(store).run == "1"
