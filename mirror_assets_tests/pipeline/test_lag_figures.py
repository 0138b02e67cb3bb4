"""What looks and plans tell of lag: the age of the oldest commit, also of a table that nobody can mirror."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.composition import Project, no_spark
from mirror_assets.config import load_config
from mirror_assets.errors import ErrorCode, RetryError, StopError
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.lag_figures import note_covered, note_look, note_plan
from mirror_assets.pipeline.next_action import Land, QuietMark, Rest
from mirror_assets.pipeline.plan import TablePlan, plan_table
from mirror_assets.pipeline.table_watch import TableWatch
from mirror_assets.source.log import SourceLog
from mirror_assets.source.log_listing import TipMark
from mirror_assets.telemetry.export import Export, exporting
from mirror_assets.telemetry.record import looked
from mirror_assets.telemetry.table_book import TableBook
from mirror_assets_tests.telemetry.follower import Follower
from mirror_assets_tests.telemetry.scrape import free_port, scrape, value

NAME = "shop.orders"


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    made = Follower(tmp_path, "{}")
    made.create()
    return made


@pytest.fixture
def context(follower: Follower) -> TableContext:
    config = load_config(follower.root / "mirror.yaml")
    return Project.of(config, no_spark).table(config.table(NAME))


@pytest.fixture
def port() -> Iterator[int]:
    found = free_port()
    with exporting(Export(port=found), pytest.fail):
        yield found


def told(port: int) -> tuple[float | None, float | None, float | None]:
    """Return lag in commits, the covered version, and the newest."""
    series = scrape(port)
    names = ("mirror_lag_commits", "mirror_covered_version", "mirror_source_version")
    commits, covered, tip = (value(series, name, table=NAME) for name in names)
    return commits, covered, tip


def lag(port: int) -> float:
    found = value(scrape(port), "mirror_lag_seconds", table=NAME)
    assert found is not None
    return found


def test_a_table_that_waits_is_asked_for_its_oldest_commit(
    port: int, follower: Follower, context: TableContext
) -> None:
    time.sleep(1)
    follower.append(NAME, [4])
    note_look(context, Land())
    assert told(port) == (2, -1, 1)
    assert 1 <= lag(port) < 60


def test_a_table_that_fails_is_asked_as_well(port: int, context: TableContext) -> None:
    note_look(context, StopError("it is held.", "rebuild it.", code=ErrorCode.TABLE_HELD))
    assert told(port) == (1, -1, 0)


def test_a_quiet_look_says_that_nothing_waits(port: int, context: TableContext) -> None:
    note_look(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    assert told(port) == (0, 7, 7)
    assert lag(port) == 0


def test_a_source_that_is_away_keeps_its_figures_and_their_age(port: int, context: TableContext) -> None:
    looked(NAME, 5, 3, time.time() - 100)
    seen = value(scrape(port), "mirror_looked_time_seconds", table=NAME)
    shutil.rmtree(context.source)
    time.sleep(5.1)  # a look at a table in trouble asks no sooner
    note_look(context, StopError("it is away.", "wait.", code=ErrorCode.SOURCE_UNREADABLE))
    assert told(port) == (2, 3, 5)
    assert lag(port) > 105
    assert value(scrape(port), "mirror_looked_time_seconds", table=NAME) == seen


def test_of_a_source_that_goes_away_nobody_says_that_nothing_waits(
    port: int, context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_look(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    with monkeypatch.context() as patched:
        patched.setattr(SourceLog, "state", lambda *_: pytest.fail("it was asked once more, and would wait once more"))
        note_look(context, RetryError("it does not answer.", "wait.", code=ErrorCode.SOURCE_UNAVAILABLE))
    series = scrape(port)
    assert value(series, "mirror_lag_seconds", table=NAME) is None
    assert value(series, "mirror_lag_commits", table=NAME) is None
    assert value(series, "mirror_source_version", table=NAME) == 7
    note_look(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    assert lag(port) == 0


def test_of_a_source_that_is_gone_nobody_says_that_nothing_waits(
    port: int, context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.pipeline.lag_figures._ASKED_SECONDS", 0.0)
    note_look(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    shutil.rmtree(context.source)
    note_look(context, StopError("it is gone.", "look.", code=ErrorCode.SOURCE_UNREADABLE))
    assert value(scrape(port), "mirror_lag_seconds", table=NAME) is None


def test_each_look_of_a_watch_is_told(port: int, context: TableContext) -> None:
    watch = TableWatch([context], lambda _: lambda _epoch, _covered: frozenset())
    watch.begin()
    assert watch.seen(30.0)
    assert told(port) == (1, -1, 0)


def test_the_next_slice_of_a_plan_waits_when_one_has_landed(port: int, context: TableContext) -> None:
    plan, now = _plan(context, covered=-1), time.time()
    looked(NAME, 0, -1, now - 50)
    first = replace(plan.slices[0], first_commit_ms=int((now - 50) * 1000), last_commit_ms=int((now - 40) * 1000))
    second = replace(first, first_commit_ms=int((now - 30) * 1000), last_commit_ms=int((now - 20) * 1000))
    both = replace(plan, slices=(first, second), state=replace(plan.state, version=9))
    note_covered(context.name, both, 0, 4)
    assert 30 <= lag(port) < 32
    note_covered(context.name, both, 1, 9)
    assert lag(port) == 0
    looked(NAME, 9, 4, now - 30)
    note_covered(context.name, both, 1, 8)  # a break stands behind the second slice: a commit goes on waiting
    assert 20 <= lag(port) < 22


def test_a_plan_of_a_first_load_leaves_what_the_look_has_told(port: int, context: TableContext) -> None:
    looked(NAME, 0, -1, time.time() - 50)
    note_plan(context.name, _plan(context, covered=-1))
    assert lag(port) >= 50


def _plan(context: TableContext, covered: int) -> TablePlan:
    plan = plan_table(context)
    assert plan.position.covered == covered
    return plan


_Steps = st.lists(st.tuples(st.booleans(), st.integers(-1, 9), st.one_of(st.none(), st.floats(0, 1000))), max_size=20)


@given(_Steps, st.floats(0, 2000))
def test_lag_and_commits_agree_whatever_is_told(steps: list[tuple[bool, int, float | None]], now: float) -> None:
    book = TableBook()
    for is_look, version, since in steps:
        if is_look:
            book.looked("a", max(version, 0), version, since, 1.0)
        else:
            book.landed("a", version, since, 1.0)
    figures = book.figures("a")
    found, commits = figures.lag(now), figures.commits
    assert (found is None) == (commits is None) == (not steps)
    if found is not None:
        assert found >= 0
        assert (commits == 0) == (figures.waiting_since is None)
        assert figures.lag(now + 10) == (0 if commits == 0 else max(0.0, now + 10 - (figures.waiting_since or 0.0)))
