"""A watch of many tables: what it polls and plans, and what it must not miss."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.composition import compose
from mirror_assets.config.load import parse_config
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline import table_watch
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.next_action import Land, QuietMark, Rest
from mirror_assets.pipeline.table_watch import PollResult, TableWatch
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_listing import TipMark

NAMES = [TableName(None, f"t{number}") for number in range(4)]


def commit(root: Path, table: int) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(root / f"t{table}", pa.table({"id": [1]}), mode="append", configuration=feed)


@pytest.fixture
def contexts(tmp_path: Path) -> list[TableContext]:
    """Four tables of one commit, of which nothing has landed."""
    lines = ["landing_zone: {path: ./zone}", "tables:"]
    for number, name in enumerate(NAMES):
        commit(tmp_path, number)
        lines.append(f"  {name}: {{source: ./t{number}, keys: [id]}}")
    config = parse_config("\n".join(lines).encode(), tmp_path / "mirror.yaml", {})
    return compose(config).tables()


def watch_of(contexts: list[TableContext]) -> TableWatch:
    return TableWatch(contexts, {})


def round_of(watch: TableWatch, seconds: float = 10.0) -> dict[TableName, PollResult]:
    """Return the polls of a round."""
    watch.begin()
    found: dict[TableName, PollResult] = {}
    deadline = time.monotonic() + seconds
    while watch.is_polling and time.monotonic() < deadline:
        found |= {seen.context.name: seen for seen in watch.polls(0.1)}
    return found


def covered(contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let every plan find that the first commit is covered; return the list of tables that are planned."""
    planned: list[str] = []

    def rest(context: TableContext, *_: object, is_complete: bool) -> Rest:
        assert is_complete
        planned.append(str(context.name))
        tip = context.log.tip_mark(context.log.state().version)
        assert isinstance(tip, TipMark)
        return Rest("covered", QuietMark("etag", None, tip))

    monkeypatch.setattr(table_watch, "next_action", rest)
    monkeypatch.setattr(table_watch, "is_quiet", lambda *_: True)
    assert len(contexts) == 4
    return planned


def test_new_tables_need_work_and_an_error_holds_up_no_other(contexts: list[TableContext], tmp_path: Path) -> None:
    (tmp_path / "t1" / "_delta_log" / f"{0:020d}.json").write_text("{")
    found = round_of(watch_of(contexts))
    assert isinstance(found[NAMES[1]].action, MirrorError)
    assert {type(found[name].action) for name in NAMES if name != NAMES[1]} == {Land}
    assert all(seen.is_complete for seen in found.values())


def test_busy_tables_are_not_polled(contexts: list[TableContext]) -> None:
    watch = watch_of(contexts)
    assert watch.begin(busy=NAMES[:3]) == 1


def test_quiet_tables_are_planned_again_after_a_commit_or_a_change_of_the_zone(
    contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planned = covered(contexts, monkeypatch)
    watch = watch_of(contexts)
    round_of(watch)
    assert not any(seen.is_complete for seen in round_of(watch).values())
    assert sorted(planned) == [str(name) for name in NAMES]
    commit(tmp_path, 2)
    assert round_of(watch)[NAMES[2]].is_complete
    assert planned[4:] == ["t2"]
    monkeypatch.setattr(table_watch, "is_quiet", lambda *_: False)
    round_of(watch)
    assert len(planned) == 5, "the zone is polled once a minute"
    monkeypatch.setattr(table_watch, "_ZONE_SECONDS", 0)
    round_of(watch)
    assert len(planned) == 9


@pytest.mark.parametrize(("fault", "is_complete"), [(SettingError, True), (RetryError, False)])
def test_a_table_that_was_reported_as_failing_is_planned_again(
    contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch, fault: type[MirrorError], *, is_complete: bool
) -> None:
    def refuse(*_: object) -> bool:
        raise fault("the token was refused", "renew it", code=ErrorCode.TOKEN_REFUSED)

    covered(contexts, monkeypatch)
    monkeypatch.setattr(table_watch, "_ZONE_SECONDS", 0)
    monkeypatch.setattr(table_watch, "_FAILED_SECONDS", 0.0)
    watch = watch_of(contexts)
    round_of(watch)
    monkeypatch.setattr(table_watch, "is_quiet", refuse)
    assert {type(seen.action) for seen in round_of(watch).values()} == {fault}
    monkeypatch.setattr(table_watch, "is_quiet", lambda *_: True)
    assert {seen.is_complete for seen in round_of(watch).values()} == {is_complete}


def test_a_table_that_keeps_failing_is_polled_less_and_less_often(
    contexts: list[TableContext], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From every 15 seconds to every four minutes: 200 such tables cost few requests a second."""
    (tmp_path / "t1" / "_delta_log" / f"{0:020d}.json").write_text("{")
    clock = [1000.0]
    monkeypatch.setattr("mirror_assets.pipeline.table_watch.time.monotonic", lambda: clock[0])
    watch, polls = watch_of(contexts), list[float]()
    while clock[0] < 1000.0 + 3600:
        due, seen = watch.begin(), list[PollResult]()
        while len(seen) < due:
            seen += watch.polls(10)
        polls += [clock[0] for one in seen if one.context.name == NAMES[1]]
        clock[0] += 5
    apart = [later - earlier for earlier, later in itertools.pairwise(polls)]
    assert apart[:5] == [15, 30, 60, 120, 240]
    assert set(apart[5:]) == {240}


def test_failures_that_were_not_recorded_pause_a_table_as_recorded_ones_do(
    contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, attempts = [1000.0], list[float]()
    monkeypatch.setattr("mirror_assets.pipeline.table_watch.time.monotonic", lambda: clock[0])
    watch = watch_of(contexts[:1])
    while clock[0] < 1500.0:
        due, seen = watch.begin(), list[PollResult]()
        while len(seen) < due:
            seen += watch.polls(10)
        if seen:
            assert isinstance(seen[0].action, Land)
            attempts.append(clock[0])
            watch.pause_unrecorded(NAMES[0])
        clock[0] += 2
    assert [later - earlier for earlier, later in itertools.pairwise(attempts)] == [30, 60, 120, 240]


def test_sources_that_hang_cost_the_others_nothing(
    contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if they are as many as there are threads: each keeps its thread, and no round waits for it."""
    monkeypatch.setattr(table_watch, "_POLLS_AT_ONCE", 2)
    monkeypatch.setattr(table_watch, "_PATIENCE_SECONDS", 0.2)
    real = DeltaLog.state

    def hang(log: DeltaLog, version: int | None = None) -> object:
        if log.uri.endswith(("t0", "t1")):
            time.sleep(30)
        return real(log, version)

    monkeypatch.setattr(DeltaLog, "state", hang)
    watch = watch_of(contexts)
    round_of(watch)
    watch.cancel()
    assert set(watch.hanging) == {NAMES[0], NAMES[1]}
    for _ in range(2):
        assert set(round_of(watch)) == {NAMES[2], NAMES[3]}


def test_polls_that_were_canceled_come_first(contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_watch, "_POLLS_AT_ONCE", 1)
    planned: list[str] = []

    def slow(context: TableContext, *_: object, is_complete: bool) -> Rest:
        assert is_complete
        planned.append(str(context.name))
        time.sleep(0.1)
        return Rest("later")

    monkeypatch.setattr(table_watch, "next_action", slow)
    watch = watch_of(contexts)
    watch.begin()
    while not planned:
        time.sleep(0.01)
    watch.cancel()
    while watch.is_polling:
        watch.polls(0.1)
    round_of(watch)
    assert planned == ["t0", "t1", "t2", "t3", "t0"]
