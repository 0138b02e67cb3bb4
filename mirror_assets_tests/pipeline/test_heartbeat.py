"""What the leases of many tables cost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from mirror_assets.composition import Project
from mirror_assets.config.load import parse_config
from mirror_assets.landing.lease import write_heartbeat
from mirror_assets.landing.names import clock_path, heartbeat_path
from mirror_assets.pipeline import heartbeat
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.heartbeat import beating
from mirror_assets.pipeline.liveness import this_process
from mirror_assets.pipeline.scheduler import Scheduler, TableWork
from mirror_assets.pipeline.table_lease import leased
from mirror_assets.zones import LocalStore
from mirror_assets_tests.pipeline.test_liveness import Clocked
from mirror_assets_tests.zones.memory import MemoryStore

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
    monkeypatch.setattr(heartbeat, "_BEAT_SECONDS", 0.2)
    lines = [f"  t{number}: {{source: ./lake/t{number}, keys: [id]}}" for number in range(_TABLES)]
    text = "\n".join(["landing_zone: {path: ./landing}", "tables:", *lines])
    project = Project.of(parse_config(text.encode(), tmp_path / "mirror.yaml", {}))
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
    monkeypatch.setattr(heartbeat, "_BEAT_SECONDS", 0.01)
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
