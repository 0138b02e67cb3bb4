"""Whether a run lives: the process table decides where it can, else its heartbeat; and what heartbeats cost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.composition import compose
from mirror_assets.config.load import parse_config
from mirror_assets.landing.names import clock_path, heartbeat_path
from mirror_assets.landing.run_records import Process, write_heartbeat
from mirror_assets.pipeline import liveness
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.leases import leased
from mirror_assets.pipeline.liveness import RunState, beating, has_ended, run_state, this_process
from mirror_assets.pipeline.scheduler import Scheduler, TableWork
from mirror_assets.zones import FileInfo, LocalStore
from mirror_assets_tests.zones.memory import MemoryStore


def ended_process() -> Process:
    """A process of this machine that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return this_process().model_copy(update={"pid": process.pid})


def living_process() -> Process:
    """The process that started this one."""
    started = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19])
    return this_process().model_copy(update={"pid": os.getppid(), "started": started})


def elsewhere() -> Process:
    """A process of another machine, which has the same host name."""
    return this_process().model_copy(update={"boot": "another machine", "pid": 1})


class Clocked(MemoryStore):
    """A store with a clock of its own: `modified` is when a file was last written."""

    def __init__(self, now: float) -> None:
        super().__init__()
        self.now = now
        self.written: dict[str, float] = {}

    def _put(self, path: str, data: bytes) -> str:
        self.written[path] = self.now
        return super()._put(path, data)

    def list(self, folder: str) -> list[FileInfo]:
        return [replace(info, modified=self.written.get(info.path)) for info in super().list(folder)]


def state(store: MemoryStore, process: Process | None, *, writes: bool = True) -> RunState:
    return run_state(store, "1", process, writes=writes)


@pytest.mark.parametrize("writes", [True, False])
def test_a_run_of_another_machine_is_dead_when_the_observer_has_seen_no_heartbeat_for_five_minutes(
    monkeypatch: pytest.MonkeyPatch, *, writes: bool
) -> None:
    store, clock = Clocked(1_000_000.0), [50.0]
    monkeypatch.setattr("mirror_assets.pipeline.liveness.time.monotonic", lambda: clock[0])
    assert state(store, elsewhere()) is RunState.RELEASED, "it has no heartbeat"
    found = list[RunState]()
    for beats in (True, True, False, False):
        if beats:
            write_heartbeat(store, "1", elsewhere())
        found.append(state(store, elsewhere(), writes=writes))
        clock[0] += 299
        found.append(state(store, elsewhere(), writes=writes))
        clock[0] += 1
    assert found == [RunState.WORKS] * 4 + [RunState.KILLED] * 4


@pytest.mark.parametrize(("age", "expected"), [(299, RunState.WORKS), (301, RunState.KILLED)])
@pytest.mark.parametrize("skew", [-86_400.0, 86_400.0])
def test_an_observer_that_comes_new_compares_two_files_of_the_store(
    age: float, expected: RunState, skew: float
) -> None:
    """Neither its own clock nor the run's decides, only that of the store."""
    store = Clocked(time.time() + skew)
    write_heartbeat(store, "1", elsewhere())
    store.now += age
    assert state(store, elsewhere()) is expected
    assert [info.name for info in store.list("_leases")] == ["_run-1.json"]


def test_an_observer_that_only_reads_writes_no_file_and_waits() -> None:
    store = Clocked(1_000_000.0)
    write_heartbeat(store, "1", elsewhere())
    store.now += 3600
    before = store.fingerprint()
    assert state(store, elsewhere(), writes=False) is RunState.WORKS
    assert store.fingerprint() == before


def test_a_run_whose_process_is_unknown_is_known_by_its_heartbeat() -> None:
    store = Clocked(1_000_000.0)
    assert state(store, None) is RunState.RELEASED
    write_heartbeat(store, "1", elsewhere())
    store.now += 301
    assert state(store, None) is RunState.KILLED


def test_a_process_of_this_machine_lives_and_dies_by_the_process_table() -> None:
    store = Clocked(1_000_000.0)
    write_heartbeat(store, "1", this_process())
    store.now += 3600
    assert state(store, this_process()) is RunState.WORKS
    assert state(store, ended_process()) is RunState.KILLED


def test_a_killed_process_that_is_a_zombie_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    mark = this_process().model_copy(update={"pid": process.pid, "started": int(started)})
    assert has_ended(mark) is False
    process.kill()
    deadline = time.monotonic() + 10
    while not has_ended(mark) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert has_ended(mark) is True
    process.wait()


def test_another_process_with_the_same_id_is_another() -> None:
    mine = this_process()
    assert has_ended(mine.model_copy(update={"started": mine.started - 1})) is True


@pytest.mark.parametrize(
    "apart",
    [{"boot": "another", "pid": 1}, {"namespace": "another", "pid": 1}, {"boot": "", "namespace": "", "started": 0}],
    ids=["machine", "container", "no process table"],
)
def test_nothing_is_known_of_processes_of_other_machines_and_containers(apart: dict[str, object]) -> None:
    """Containers of one host have its name and boot, and their own process ids."""
    assert has_ended(this_process().model_copy(update=apart)) is None


_TABLES = 100


def test_waiting_tables_cost_neither_threads_nor_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: each queued table had a thread that renewed its lease every 30 seconds."""
    requests = Counter[str]()
    for name in ("read", "create", "replace", "head", "list", "delete"):
        real = getattr(LocalStore, name)

        def counted(self: LocalStore, *args: object, name: str = name, real: object = real) -> object:
            requests[name] += 1
            assert callable(real)
            return real(self, *args)

        monkeypatch.setattr(LocalStore, name, counted)
    monkeypatch.setattr(liveness, "_BEAT_SECONDS", 0.2)
    lines = [f"  t{number}: {{source: ./lake/t{number}, keys: [id]}}" for number in range(_TABLES)]
    text = "\n".join(["landing_zone: {path: ./landing}", "tables:", *lines])
    project = compose(parse_config(text.encode(), tmp_path / "mirror.yaml", {}))
    began = set[str]()

    def work(context: TableContext) -> TableWork:
        with leased(context, "run"):
            while True:
                began.add(str(context.name))
                yield None

    before, scheduler = threading.active_count(), Scheduler(4)
    for context in project.tables():
        scheduler.add(context.name, work(context))
    while len(began) < _TABLES:
        scheduler.run_turns(1.0)
    scheduler.run_turns(1.0)
    assert threading.active_count() <= before + 4 + 12 + 1
    requests.clear()
    time.sleep(1.0)
    assert requests["replace"] >= 2, "the heartbeat"
    assert sum(requests.values()) <= 20
    scheduler.stop(10)
    assert [file.name for file in (tmp_path / "landing" / "_leases").glob("*.json")] == []


def test_the_heartbeat_is_there_before_the_first_lease_and_until_after_the_last() -> None:
    store, held = MemoryStore(), list[bool]()

    def is_beating() -> bool:
        return store.head(heartbeat_path("1")) is not None

    with ExitStack() as leases:
        for path in ("a", "b"):
            leases.enter_context(beating(store, "1", path))
            held.append(is_beating())
        with beating(store, "1", "c"):
            pass
        held.append(is_beating())
    assert held == [True] * 3
    assert not is_beating()


def test_heartbeats_that_killed_runs_left_are_deleted_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "_BEAT_SECONDS", 0.01)
    store = Clocked(1_000_000.0)
    write_heartbeat(store, "old", this_process())
    store.create(clock_path("0"), b"{}")
    store.create("_leases/__run-old.json.lock", b"")
    store.create("_leases/shop.orders.json", b"{}")
    store.now += 3600
    write_heartbeat(store, "killed an hour ago", this_process())
    store.now += 86_000
    with beating(store, "1", "a"):
        deadline = time.monotonic() + 10
        while store.head(heartbeat_path("old")) is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.1)
        names = [info.name for info in store.list("_leases")]
    assert names == ["_run-1.json", "_run-killed an hour ago.json", "shop.orders.json"]
