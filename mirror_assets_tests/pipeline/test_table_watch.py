"""A watch of many tables: what it polls, how often, and what it must not miss."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection
from dataclasses import dataclass, field
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
from mirror_assets.pipeline.next_action import Action, Land, QuietMark, Rebuild, Rest
from mirror_assets.pipeline.scheduler import Scheduler, TableWork
from mirror_assets.pipeline.table_watch import PollResult, PollRounds, TableWatch
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


_TABLE = TableName(None, "t")


@dataclass
class Scripted(TableWatch):
    """Polls with scripted actions, of which the last one is repeated."""

    answers: list[Action] = field(default_factory=list)
    cpu_seconds: float = 0.0
    complete: bool = False
    rounds: list[float] = field(default_factory=list)

    def begin(self, busy: Collection[TableName] = (), *, on_disk: bool = False) -> int:
        if busy or on_disk:  # a turn takes long on a machine that others use
            return 0
        self.rounds.append(time.monotonic())
        action = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self._polls.put(PollResult(self.contexts[0], action, self.complete, self.cpu_seconds))
        return 1


@pytest.fixture
def context(tmp_path: Path) -> TableContext:
    text = b"landing_zone: {path: ./zone}\ntables: {t: {source: ./t, keys: [id]}}"
    return compose(parse_config(text, tmp_path / "mirror.yaml", {})).tables()[0]


def polled(watch: Scripted, seconds: float, *, polls_after_work: bool = False) -> list[str | None]:
    """Follow for a while, or until nothing is pending; return for each work why it is to rebuild first, if so."""
    begun, scheduler = list[str | None](), Scheduler(1)

    def work(why: str | None) -> TableWork:
        begun.append(why)
        yield None

    deadline, rounds = time.monotonic() + seconds, PollRounds(watch, 0.05, polls_after_work=polls_after_work)
    while time.monotonic() <= deadline and not (polls_after_work and rounds.is_idle(scheduler.tables)):
        for poll in rounds.polls(scheduler.tables):
            if isinstance(poll.action, Land | Rebuild):
                scheduler.add(_TABLE, work(poll.action.why if isinstance(poll.action, Rebuild) else None))
        if scheduler.tables:
            scheduler.run_turns()
    return begun


def scripted(context: TableContext, *answers: Action) -> Scripted:
    return Scripted([context], {}, answers=list(answers))


@pytest.mark.parametrize(
    ("cpu_seconds", "is_complete", "rounds"),
    [(0.0, False, range(2, 99)), (1.0, False, range(1, 3)), (3.0, True, range(3, 99))],
    ids=["as often as configured", "less often if they cost much", "complete polls delay none"],
)
def test_how_often_tables_are_polled(
    context: TableContext, cpu_seconds: float, rounds: range, *, is_complete: bool
) -> None:
    """Complete polls: a hundred tables that have just landed something would mean no poll for minutes."""
    watch = scripted(context, Rest("quiet"))
    watch.cpu_seconds, watch.complete = cpu_seconds, is_complete
    polled(watch, 2.0)
    assert len(watch.rounds) in rounds
    assert all(after - before >= 0.05 for before, after in itertools.pairwise(watch.rounds))


@dataclass
class Counted(TableWatch):
    """Counts its rounds, by whether they poll all tables."""

    all: int = 0
    at_rest: int = 0

    def begin(self, busy: Collection[TableName] = (), *, on_disk: bool = False) -> int:
        self.all += not on_disk
        self.at_rest += on_disk
        return super().begin(busy, on_disk=on_disk)


def landing(rounds: PollRounds, seconds: float) -> list[TableName]:
    """Poll for a while; return the tables that need work, as often as that was found."""
    found, deadline = list[PollResult](), time.monotonic() + seconds
    while time.monotonic() < deadline:
        found += rounds.polls(())
    return [poll.context.name for poll in found if isinstance(poll.action, Land)]


def test_tables_at_rest_on_a_disk_are_polled_between_the_rounds(
    contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A commit on a local disk waited two seconds at most for its poll; the poll costs no request."""
    covered(contexts, monkeypatch)
    monkeypatch.setattr(table_watch, "_DISK_SECONDS", 0.01)
    monkeypatch.setattr(table_watch, "_DEFAULT_SECONDS", 3600.0)
    watch = Counted(contexts, {})
    rounds = PollRounds(watch, 3600.0)
    assert not landing(rounds, 0.5)
    commit(tmp_path, 1)
    monkeypatch.setattr(table_watch, "next_action", lambda *_, is_complete: Land() if is_complete else None)
    assert landing(rounds, 0.5) == [NAMES[1]], "after work, it waits for the next round: its commits share files"
    assert watch.all == 1
    assert watch.at_rest > 2


def test_a_longer_interval_is_that_of_all_tables(contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sets it wants fewer files."""
    covered(contexts, monkeypatch)
    monkeypatch.setattr(table_watch, "_DISK_SECONDS", 0.01)
    watch = Counted(contexts, {})
    landing(PollRounds(watch, 3.0), 0.5)
    assert (watch.all, watch.at_rest) == (1, 0)


def test_a_source_that_costs_a_request_has_no_polls_between_the_rounds(
    contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    covered(contexts, monkeypatch)
    monkeypatch.setattr(DeltaLog, "is_on_disk", False)
    watch = watch_of(contexts)
    round_of(watch)
    assert watch.begin(on_disk=True) == 0


def test_a_slow_mount_delays_no_round_of_all_tables(
    contexts: list[TableContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer takes almost as long as the time between two rounds of all tables."""
    covered(contexts, monkeypatch)
    monkeypatch.setattr(table_watch, "_DISK_SECONDS", 0.1)
    began, has_next = list[float](), DeltaLog.has_next

    @dataclass
    class Timed(TableWatch):
        def begin(self, busy: Collection[TableName] = (), *, on_disk: bool = False) -> int:
            began.extend([] if on_disk else [time.monotonic()])
            return super().begin(busy, on_disk=on_disk)

    def slow(log: DeltaLog, tip: TipMark) -> bool:
        time.sleep(0.35)
        return has_next(log, tip)

    monkeypatch.setattr(DeltaLog, "has_next", slow)
    landing(PollRounds(Timed(contexts[:1], {}), 0.4), 3.2)
    gaps = [after - before for before, after in itertools.pairwise(began)]
    late = [gap for gap in gaps if gap > 0.6]
    assert len(late) <= len(gaps) / 2, gaps


def test_what_needs_work_gets_it(context: TableContext) -> None:
    assert polled(scripted(context, Land(), Rebuild("why"), Rest("quiet")), 3.0) == [None, "why"]


def test_a_run_that_ends_polls_once_more_after_its_last_work(context: TableContext) -> None:
    watch = scripted(context, Land(), Rest("quiet"))
    began = time.monotonic()
    assert polled(watch, 60.0, polls_after_work=True) == [None]
    assert len(watch.rounds) == 2
    assert time.monotonic() - began < 30
