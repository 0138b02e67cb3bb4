"""Who works when: tables take turns, one slice each; none waits for a long one, or for a store that is silent."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.config.load import parse_config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline import many_tables
from mirror_assets.pipeline import scheduler as scheduler_module
from mirror_assets.pipeline.many_tables import DaemonPool, SilentStores
from mirror_assets.pipeline.scheduler import Scheduler, TableWork


def table(number: int) -> TableName:
    return TableName(None, f"t{number}")


class Diary:
    """What was done, in order, and how many worked at the same time."""

    def __init__(self) -> None:
        self.done: list[tuple[int, int]] = []
        self.ended: list[int] = []
        self._lock = threading.Lock()
        self._at_work: Counter[int] = Counter()
        self.most = 0

    def work(self, number: int, slices: int, seconds: float = 0.0) -> TableWork:
        try:
            for index in range(slices):
                with self._lock:
                    self._at_work[number] += 1
                    assert self._at_work[number] == 1, "a table has one turn at a time"
                    self.most = max(self.most, self._at_work.total())
                time.sleep(seconds)
                with self._lock:
                    self._at_work[number] -= 1
                    self.done.append((number, index))
                yield None
        finally:
            self.ended.append(number)


def test_a_catch_up_keeps_no_small_table_waiting() -> None:
    diary, scheduler = Diary(), Scheduler(1)
    scheduler.add(table(0), diary.work(0, 5))
    for number in (1, 2, 3):
        scheduler.add(table(number), diary.work(number, 1))
    scheduler.finish()
    assert diary.done[:4] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert diary.done[4:] == [(0, index) for index in (1, 2, 3, 4)]


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(1, 5))
def test_every_slice_is_done_once_in_order_and_not_too_many_at_once(slices: list[int], at_once: int) -> None:
    diary, scheduler = Diary(), Scheduler(at_once)
    for number, count in enumerate(slices):
        scheduler.add(table(number), diary.work(number, count))
    scheduler.finish()
    assert sorted(diary.done) == [(number, index) for number, count in enumerate(slices) for index in range(count)]
    for number in range(len(slices)):
        mine = [index for other, index in diary.done if other == number]
        assert mine == sorted(mine)
    assert diary.most <= at_once
    assert scheduler.tables == frozenset()


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def hanging(stuck: threading.Event) -> TableWork:
    stuck.wait(30)
    yield None


def test_a_turn_that_takes_long_no_longer_counts(monkeypatch: pytest.MonkeyPatch, stuck: threading.Event) -> None:
    monkeypatch.setattr(scheduler_module, "_LONG_TURN_SECONDS", 0.05)
    diary, scheduler = Diary(), Scheduler(1)
    scheduler.add(table(0), hanging(stuck))
    scheduler.add(table(1), diary.work(1, 3))
    deadline = time.monotonic() + 10
    while len(diary.done) < 3:
        scheduler.run_turns(0.02)
        assert time.monotonic() < deadline
    assert scheduler.tables >= {table(0)}
    stuck.set()
    scheduler.finish()


def test_a_stop_releases_the_other_tables_before_it_waits_for_a_long_slice(stuck: threading.Event) -> None:
    diary, scheduler = Diary(), Scheduler(2)
    scheduler.add(table(0), hanging(stuck))
    for number in (1, 2, 3):
        scheduler.add(table(number), diary.work(number, 9, seconds=0.2))
    while len(diary.done) < 3:
        scheduler.run_turns(5)
    stop = threading.Thread(target=scheduler.stop, args=(None,))
    stop.start()  # tables 0 and 1 are at work, the others between two slices
    deadline = time.monotonic() + 10
    while len(diary.ended) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (sorted(diary.ended), stop.is_alive()) == ([1, 2, 3], True)
    stuck.set()
    stop.join(10)
    assert not stop.is_alive()


@pytest.mark.parametrize("seconds", [10, None])
def test_a_stop_waits_for_the_running_slices_and_releases_all_tables(seconds: float | None) -> None:
    diary, scheduler = Diary(), Scheduler(2)
    for number in range(4):
        scheduler.add(table(number), diary.work(number, 9, seconds=0.1))
    scheduler.run_turns(0.0)
    scheduler.stop(seconds)
    assert sorted(diary.done) == [(0, 0), (1, 0)]
    assert sorted(diary.ended) == [0, 1], "what has not begun holds nothing"
    assert scheduler.tables == frozenset()


def test_a_stop_with_a_limit_ends_at_it(stuck: threading.Event) -> None:
    scheduler = Scheduler(1)
    scheduler.add(table(0), hanging(stuck))
    scheduler.run_turns(0.0)
    began = time.monotonic()
    scheduler.stop(0.1)
    assert time.monotonic() - began < 5


def test_a_stop_with_a_limit_waits_once_for_turns_and_releases(stuck: threading.Event) -> None:
    def unreleased() -> TableWork:
        try:
            yield None
            yield None
        finally:
            stuck.wait()

    scheduler = Scheduler(2)
    scheduler.add(table(0), unreleased())
    scheduler.run_turns(0.5)
    scheduler.add(table(1), hanging(stuck))
    scheduler.run_turns(0.0)
    began = time.monotonic()
    scheduler.stop(1.0)
    assert time.monotonic() - began < 1.8


def test_a_pool_runs_all_calls_in_few_threads_and_raises_their_errors() -> None:
    pool, threads = DaemonPool("test", 3), set()

    def call(number: int) -> int:
        threads.add(threading.current_thread().name)
        if number == 7:
            raise ValueError(number)
        return number * 2

    futures = [pool.submit(lambda number=number: call(number)) for number in range(50)]  # type: ignore[misc]
    assert [future.result(10) for number, future in enumerate(futures) if number != 7] == [
        number * 2 for number in range(50) if number != 7
    ]
    with pytest.raises(ValueError, match="7"):
        futures[7].result(10)
    assert threads <= {"test-0", "test-1", "test-2"}


def test_a_call_that_hangs_leaves_the_other_threads_to_the_others(stuck: threading.Event) -> None:
    pool = DaemonPool("test", 1)
    first = pool.submit(lambda: stuck.wait(30))
    pool.size = 2
    assert pool.submit(lambda: 5).result(10) == 5
    assert not first.done()


_SOURCES = {"t0": "s3://lake/t0", "t1": "s3://lake/t1", "other": "s3://other/t", "local": "./t"}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, TableSettings]:
    text = "landing_zone: {path: ./landing}\ntables:\n"
    text += "".join(f"  {name}: {{source: '{source}', keys: [id]}}\n" for name, source in _SOURCES.items())
    config = parse_config(text.encode(), tmp_path / "mirror.yaml", {})
    return {name: config.table(name) for name in _SOURCES}


def _fails(silent: SilentStores, table: TableSettings, code: ErrorCode, times: int) -> None:
    for _ in range(times):
        with pytest.raises(RetryError, match=r"^no answer"), silent.asking(table, source=True):
            raise RetryError("no answer.", "wait.", code=code)


def test_a_source_that_is_silent_is_not_asked_for_other_tables(tables: dict[str, TableSettings]) -> None:
    silent = SilentStores()
    _fails(silent, tables["t0"], ErrorCode.SOURCE_UNAVAILABLE, 5)
    with pytest.raises(RetryError, match=r"s3://lake did not respond to 5 requests.*no answer") as refused:
        silent.asking(tables["t1"], source=True).__enter__()
    assert refused.value.code is ErrorCode.SOURCE_UNAVAILABLE
    for name in ("other", "local"):
        with silent.asking(tables[name], source=True):
            pass
    with silent.asking(tables["t1"], source=False):
        pass  # a question that the landing zone alone answers


def test_a_landing_zone_that_is_silent_is_asked_for_no_table(tables: dict[str, TableSettings]) -> None:
    silent = SilentStores()
    _fails(silent, tables["t0"], ErrorCode.STORE_UNAVAILABLE, 5)
    with pytest.raises(RetryError, match="the landing zone did not respond to 5 requests"):
        silent.asking(tables["other"], source=False).__enter__()


def test_a_few_requests_may_be_lost_and_other_errors_do_not_count(tables: dict[str, TableSettings]) -> None:
    silent = SilentStores()
    _fails(silent, tables["t0"], ErrorCode.SOURCE_UNAVAILABLE, 4)
    _fails(silent, tables["t0"], ErrorCode.TABLE_BUSY, 20)
    with silent.asking(tables["t1"], source=True):
        pass


def test_it_is_asked_again_after_some_minutes(
    tables: dict[str, TableSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = SilentStores()
    _fails(silent, tables["t0"], ErrorCode.SOURCE_UNAVAILABLE, 5)
    monkeypatch.setattr(many_tables, "_RECENT_SECONDS", 0.0)
    with silent.asking(tables["t1"], source=True):
        pass
