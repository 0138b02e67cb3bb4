"""What a watch sees of many tables, what it costs, and what it must not overlook."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.composition import Project
from mirror_assets.config.load import parse_config
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline import table_watch
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.next_action import Land, QuietMark, Rest
from mirror_assets.pipeline.plan import no_boundaries
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
    return Project.of(config).tables()


def watch_of(contexts: list[TableContext]) -> TableWatch:
    return TableWatch(contexts, lambda _: no_boundaries)


def round_of(watch: TableWatch, seconds: float = 10.0) -> dict[TableName, PollResult]:
    """What a round of looks sees."""
    watch.begin()
    found: dict[TableName, PollResult] = {}
    deadline = time.monotonic() + seconds
    while watch.is_polling and time.monotonic() < deadline:
        found |= {seen.context.name: seen for seen in watch.polls(0.1)}
    return found


def covered(contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let every complete look find that the first commit is covered; return the tables that are looked at so."""
    looked: list[str] = []

    def rest(context: TableContext, *_: object, is_complete: bool) -> Rest:
        assert is_complete
        looked.append(str(context.name))
        tip = context.log.tip_mark(context.log.state().version)
        assert isinstance(tip, TipMark)
        return Rest("covered", QuietMark("etag", None, tip))

    monkeypatch.setattr(table_watch, "next_action", rest)
    monkeypatch.setattr(table_watch, "is_quiet", lambda *_: True)
    assert len(contexts) == 4
    return looked


def test_new_tables_need_work(contexts: list[TableContext]) -> None:
    found = round_of(watch_of(contexts))
    assert {name: type(seen.action) for name, seen in found.items()} == dict.fromkeys(NAMES, Land)
    assert all(seen.is_complete for seen in found.values())


def test_quiet_tables_are_planned_once(contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch) -> None:
    looked = covered(contexts, monkeypatch)
    watch = watch_of(contexts)
    round_of(watch)
    found = round_of(watch)
    assert sorted(looked) == [str(name) for name in NAMES]
    assert not any(seen.is_complete for seen in found.values())


def test_a_commit_is_seen_in_the_next_round(
    contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked = covered(contexts, monkeypatch)
    watch = watch_of(contexts)
    round_of(watch)
    looked.clear()
    commit(tmp_path, 2)
    found = round_of(watch)
    assert looked == ["t2"]
    assert found[NAMES[2]].is_complete


def test_what_is_done_to_the_zone_is_seen_within_a_minute(
    contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = covered(contexts, monkeypatch)
    watch = watch_of(contexts)
    round_of(watch)
    monkeypatch.setattr(table_watch, "is_quiet", lambda *_: False)
    round_of(watch)
    assert len(looked) == 4
    monkeypatch.setattr(table_watch, "_ZONE_SECONDS", 0)
    round_of(watch)
    assert len(looked) == 8


@pytest.mark.parametrize(("fault", "is_complete"), [(SettingError, True), (RetryError, False)])
def test_a_table_that_was_told_as_failing_is_looked_at_completely_again(
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


def test_busy_tables_are_not_looked_at(contexts: list[TableContext]) -> None:
    watch = watch_of(contexts)
    assert watch.begin(busy=NAMES[:3]) == 1


def test_an_error_is_seen_and_holds_up_no_other(contexts: list[TableContext], tmp_path: Path) -> None:
    (tmp_path / "t1" / "_delta_log" / f"{0:020d}.json").write_text("{")
    found = round_of(watch_of(contexts))
    assert isinstance(found[NAMES[1]].action, MirrorError)
    assert isinstance(found[NAMES[2]].action, Land)


def test_a_table_that_stays_in_trouble_is_looked_at_less_and_less_often(
    contexts: list[TableContext], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From every 15 seconds to every four minutes: 200 such tables cost few requests a second."""
    (tmp_path / "t1" / "_delta_log" / f"{0:020d}.json").write_text("{")
    clock = [1000.0]
    monkeypatch.setattr("mirror_assets.pipeline.table_watch.time.monotonic", lambda: clock[0])
    watch, looks = watch_of(contexts), list[float]()
    while clock[0] < 1000.0 + 3600:
        watch.begin()
        for known in watch._states.values():
            if known.poll is not None:
                known.poll.result(10)
        looks += [clock[0] for seen in watch.polls() if seen.context.name == NAMES[1]]
        clock[0] += 5
    apart = [later - earlier for earlier, later in itertools.pairwise(looks)]
    assert apart[:5] == [15, 30, 60, 120, 240]
    assert set(apart[5:]) == {240}


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


def test_looks_that_were_called_off_come_first(contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_watch, "_POLLS_AT_ONCE", 1)
    looked: list[str] = []

    def slow(context: TableContext, *_: object, is_complete: bool) -> Rest:
        assert is_complete
        looked.append(str(context.name))
        time.sleep(0.1)
        return Rest("later")

    monkeypatch.setattr(table_watch, "next_action", slow)
    watch = watch_of(contexts)
    watch.begin()
    while not looked:
        time.sleep(0.01)
    watch.cancel()
    while watch.is_polling:
        watch.polls(0.1)
    round_of(watch)
    assert looked == ["t0", "t1", "t2", "t3", "t0"]
