"""How often tables are looked at, and what a run does with what it sees."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mirror_assets.composition import Project
from mirror_assets.config.load import parse_config
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.next_action import Action, Land, Rebuild, Rest
from mirror_assets.pipeline.plan import no_boundaries
from mirror_assets.pipeline.scheduler import Scheduler, TableWork, follow
from mirror_assets.pipeline.table_watch import PollResult, TableWatch

TABLE = TableName(None, "t")


@dataclass
class Scripted(TableWatch):
    """Sees one thing after another, the last one for ever; a look costs so much and is so complete."""

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
    return Project.of(parse_config(text, tmp_path / "mirror.yaml", {})).tables()[0]


def polled(watch: Scripted, seconds: float, *, polls_after_work: bool = False) -> list[str | None]:
    """Follow for a while, or until nothing is pending; return for each work why it is to rebuild first, if so."""
    begun: list[str | None] = []

    def work(_: TableContext, why: str | None) -> TableWork:
        begun.append(why)
        yield None

    deadline = time.monotonic() + seconds
    follow(
        watch,
        Scheduler(1),
        work,
        lambda _: None,
        0.05,
        lambda is_idle: time.monotonic() > deadline or (polls_after_work and is_idle),
        polls_after_work=polls_after_work,
    )
    return begun


def watch_of(context: TableContext, *answers: Action) -> Scripted:
    return Scripted([context], lambda _: no_boundaries, answers=list(answers))


def test_looks_come_as_often_as_asked_for(context: TableContext) -> None:
    watch = watch_of(context, Rest("quiet"))
    polled(watch, 1.0)
    assert len(watch.rounds) >= 2
    assert min(after - before for before, after in zip(watch.rounds, watch.rounds[1:], strict=False)) >= 0.05


def test_looks_that_cost_much_come_less_often(context: TableContext) -> None:
    watch = watch_of(context, Rest("quiet"))
    watch.cpu_seconds = 1.0
    polled(watch, 1.0)
    assert len(watch.rounds) <= 2


def test_complete_looks_delay_none(context: TableContext) -> None:
    """A hundred tables that have just landed something are planned: that would have meant no look for minutes."""
    watch = watch_of(context, Rest("quiet"))
    watch.cpu_seconds, watch.complete = 3.0, True
    polled(watch, 2.0)
    assert len(watch.rounds) > 2


def test_what_needs_work_gets_it(context: TableContext) -> None:
    assert polled(watch_of(context, Land(), Rebuild("why"), Rest("quiet")), 3.0) == [None, "why"]


def test_a_run_that_ends_looks_once_more_behind_its_last_work(context: TableContext) -> None:
    watch = watch_of(context, Land(), Rest("quiet"))
    began = time.monotonic()
    assert polled(watch, 60.0, polls_after_work=True) == [None]
    assert len(watch.rounds) == 2
    assert time.monotonic() - began < 30
