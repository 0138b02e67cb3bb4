"""How often tables are polled, and which work a run schedules then."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mirror_assets.composition import compose
from mirror_assets.config.load import parse_config
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.next_action import Action, Land, Rebuild, Rest
from mirror_assets.pipeline.scheduler import Scheduler, TableWork
from mirror_assets.pipeline.table_watch import PollResult, PollRounds, TableWatch

TABLE = TableName(None, "t")


@dataclass
class Scripted(TableWatch):
    """Polls with scripted actions, of which the last one is repeated."""

    answers: list[Action] = field(default_factory=list)
    cpu_seconds: float = 0.0
    complete: bool = False
    rounds: list[float] = field(default_factory=list)

    def begin(self, busy: Collection[TableName] = ()) -> int:
        assert not busy
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
                scheduler.add(TABLE, work(poll.action.why if isinstance(poll.action, Rebuild) else None))
        if scheduler.tables:
            scheduler.run_turns()
    return begun


def watch_of(context: TableContext, *answers: Action) -> Scripted:
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
    watch = watch_of(context, Rest("quiet"))
    watch.cpu_seconds, watch.complete = cpu_seconds, is_complete
    polled(watch, 2.0)
    assert len(watch.rounds) in rounds
    assert all(after - before >= 0.05 for before, after in itertools.pairwise(watch.rounds))


def test_what_needs_work_gets_it(context: TableContext) -> None:
    assert polled(watch_of(context, Land(), Rebuild("why"), Rest("quiet")), 3.0) == [None, "why"]


def test_a_run_that_ends_polls_once_more_after_its_last_work(context: TableContext) -> None:
    watch = watch_of(context, Land(), Rest("quiet"))
    began = time.monotonic()
    assert polled(watch, 60.0, polls_after_work=True) == [None]
    assert len(watch.rounds) == 2
    assert time.monotonic() - began < 30
