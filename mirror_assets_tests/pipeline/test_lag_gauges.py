"""Polls and plans update the lag gauges, for tables that can't be mirrored as well."""

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
from mirror_assets.config.load import load_config
from mirror_assets.errors import ErrorCode, RetryError, StopError
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.lag_gauges import note_covered, note_plan, note_poll
from mirror_assets.pipeline.next_action import Land, QuietMark, Rest
from mirror_assets.pipeline.plan import TablePlan, plan_table
from mirror_assets.pipeline.table_watch import TableWatch
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_listing import TipMark
from mirror_assets.telemetry.export import exporting
from mirror_assets.telemetry.record import table_gauges
from mirror_assets.telemetry.table_gauges import TableGauges
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
    with exporting(pytest.fail, port=found):
        yield found


def gauges() -> TableGauges:
    found = table_gauges()
    assert found is not None
    return found


def exported(port: int) -> tuple[float | None, float | None, float | None]:
    """Return lag in commits, the covered version, and the newest."""
    series = scrape(port)
    names = ("mirror_lag_commits", "mirror_covered_version", "mirror_source_version")
    commits, covered, tip = (value(series, name, table=NAME) for name in names)
    return commits, covered, tip


def lag(port: int) -> float:
    found = value(scrape(port), "mirror_lag_seconds", table=NAME)
    assert found is not None
    return found


@pytest.mark.parametrize("action", [Land(), StopError("it is held.", "rebuild it.", code=ErrorCode.TABLE_HELD)])
def test_a_table_with_pending_commits_is_read_for_its_oldest_one_also_if_it_fails(
    port: int, follower: Follower, context: TableContext, action: Land | StopError
) -> None:
    time.sleep(1)
    follower.append(NAME, [4])
    note_poll(context, action)
    assert exported(port) == (2, -1, 1)
    assert 1 <= lag(port) < 60


def test_a_poll_that_finds_no_change_sets_the_lag_to_zero(port: int, context: TableContext) -> None:
    note_poll(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    assert exported(port) == (0, 7, 7)
    assert lag(port) == 0


def test_an_unreachable_source_retains_its_values_and_their_age(port: int, context: TableContext) -> None:
    gauges().set_source(NAME, 5, 3, time.time() - 100)
    seen = value(scrape(port), "mirror_polled_time_seconds", table=NAME)
    shutil.rmtree(context.log.uri)
    time.sleep(5.1)  # the minimum time between reads
    note_poll(context, StopError("it is away.", "wait.", code=ErrorCode.SOURCE_UNREADABLE))
    assert exported(port) == (2, 3, 5)
    assert lag(port) > 105
    assert value(scrape(port), "mirror_polled_time_seconds", table=NAME) == seen


def test_the_lag_of_a_source_that_becomes_unreachable_is_unknown(
    port: int, context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_poll(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "state", lambda *_: pytest.fail("the source was read again"))
        note_poll(context, RetryError("it does not answer.", "wait.", code=ErrorCode.SOURCE_UNAVAILABLE))
    series = scrape(port)
    assert value(series, "mirror_lag_seconds", table=NAME) is None
    assert value(series, "mirror_lag_commits", table=NAME) is None
    assert value(series, "mirror_source_version", table=NAME) == 7
    note_poll(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    assert lag(port) == 0


def test_the_lag_of_a_deleted_source_is_unknown(
    port: int, context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.pipeline.lag_gauges._READ_SECONDS", 0.0)
    note_poll(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    shutil.rmtree(context.log.uri)
    note_poll(context, StopError("it is gone.", "look.", code=ErrorCode.SOURCE_UNREADABLE))
    assert value(scrape(port), "mirror_lag_seconds", table=NAME) is None


def test_each_poll_of_a_watch_updates_the_gauges(port: int, context: TableContext) -> None:
    watch = TableWatch([context], lambda _: lambda _epoch, _covered: frozenset())
    watch.begin()
    assert watch.polls(30.0)
    assert exported(port) == (1, -1, 0)


def test_after_a_slice_lands_the_next_one_is_pending(port: int, context: TableContext) -> None:
    plan, now = _plan(context, covered=-1), time.time()
    gauges().set_source(NAME, 0, -1, now - 50)
    first = replace(plan.slices[0], first_commit_ms=int((now - 50) * 1000), last_commit_ms=int((now - 40) * 1000))
    second = replace(first, first_commit_ms=int((now - 30) * 1000), last_commit_ms=int((now - 20) * 1000))
    both = replace(plan, slices=(first, second), state=replace(plan.state, version=9))
    note_covered(context.name, both, 0, 4)
    assert 30 <= lag(port) < 32
    note_covered(context.name, both, 1, 9)
    assert lag(port) == 0
    gauges().set_source(NAME, 9, 4, now - 30)
    note_covered(context.name, both, 1, 8)  # a break follows the second slice: a commit remains pending
    assert 20 <= lag(port) < 22


def test_the_plan_of_a_first_load_does_not_replace_the_poll(port: int, context: TableContext) -> None:
    gauges().set_source(NAME, 0, -1, time.time() - 50)
    note_plan(context.name, _plan(context, covered=-1))
    assert lag(port) >= 50


def _plan(context: TableContext, covered: int) -> TablePlan:
    plan = plan_table(context)
    assert plan.position.covered == covered
    return plan


_Steps = st.lists(st.tuples(st.booleans(), st.integers(-1, 9), st.one_of(st.none(), st.floats(0, 1000))), max_size=20)


@given(_Steps, st.floats(0, 2000))
def test_lag_and_pending_commits_agree_for_any_sequence(
    steps: list[tuple[bool, int, float | None]], now: float
) -> None:
    tables = TableGauges()
    for is_poll, version, since in steps:
        if is_poll:
            tables.set_source("a", max(version, 0), version, since)
        else:
            tables.set_covered("a", version, since)
    progress = tables.progress("a")
    found, commits = progress.lag(now), progress.pending_commits
    assert (found is None) == (commits is None) == (not steps)
    if found is not None:
        assert found >= 0
        assert (commits == 0) == (progress.waiting_since is None)
        assert progress.lag(now + 10) == (0 if commits == 0 else max(0.0, now + 10 - (progress.waiting_since or 0.0)))
