"""A table's lag, from its log: deadlines, what a run does behind them, and the gauges that polls and plans update."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.config.setting_values import OnBreak
from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError
from mirror_assets.landing.format import Chunk
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.lag import feed_deadline, note_covered, note_plan, note_poll, pending_commits, table_lag
from mirror_assets.pipeline.next_action import Land, QuietMark, Rest
from mirror_assets.pipeline.plan import TablePlan, plan_table
from mirror_assets.pipeline.rebuild_table import drop_table
from mirror_assets.pipeline.spark_sessions import no_spark
from mirror_assets.pipeline.table_watch import TableWatch
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_listing import TipMark
from mirror_assets.telemetry.export import exporting
from mirror_assets.telemetry.record import table_gauges
from mirror_assets.telemetry.table_gauges import TableGauges
from mirror_assets.verify.timeliness import Lag, ReadDeadline, check_retention
from mirror_assets_tests.errors import raises
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.pipeline.paper import TABLE, Paper
from mirror_assets_tests.scripted_mirror import Scripted
from mirror_assets_tests.source.handmade import commit_file, file_action
from mirror_assets_tests.telemetry.follower import Follower
from mirror_assets_tests.telemetry.scrape import free_port, scrape, value

_DAY = 86_400.0
_NOW = 100 * _DAY


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """Five commits, one a day, of which the newest was made just now."""
    made = Paper(tmp_path)
    made.create(_NOW - 4 * _DAY)
    for version in range(1, 5):
        made.commit(version, _NOW - (4 - version) * _DAY)
    return made


def _deadline(paper: Paper) -> ReadDeadline:
    return feed_deadline(paper.context, pending_commits(paper.context), _NOW)


def test_the_clock_runs_from_the_first_commit_that_waits(paper: Paper) -> None:
    paper.cover(1)
    deadline = _deadline(paper)
    assert (deadline.version, deadline.waits, deadline.seconds_left) == (2, True, 5 * _DAY)


def test_a_commit_that_is_gone_is_past_the_horizon(paper: Paper) -> None:
    paper.cover(1)
    assert not _deadline(paper).is_gone
    DeltaTable(paper.lake, version=3).create_checkpoint()
    for version in range(3):
        commit_file(paper.lake, version).unlink()
    assert (_deadline(paper).version, _deadline(paper).is_gone, _deadline(paper).seconds_left) == (2, True, 0.0)


def test_a_file_that_is_gone_is_past_the_horizon(paper: Paper) -> None:
    paper.cover(1)
    (paper.lake / "3.parquet").unlink()
    assert not _deadline(paper).is_gone
    (paper.lake / "2.parquet").unlink()
    assert (_deadline(paper).lost, _deadline(paper).is_gone, _deadline(paper).seconds_left) == (
        ("2.parquet",),
        True,
        0.0,
    )
    assert (
        "2.parquet, a file of version 2, was deleted: the table is rebuilt"
        in check_retention(_deadline(paper), 1).message
    )
    of_rows_before = Paper(paper.root, "changes: row_tracking")
    assert not _deadline(of_rows_before).is_gone


@pytest.mark.parametrize("changes", ["feed", "files", "row_tracking", "append_only"])
def test_files_that_a_commit_only_rewrote_are_not_needed(paper: Paper, changes: str) -> None:
    """OPTIMIZE: its files change no data, so the mirror goes on when VACUUM has taken them."""
    paper.cover(4)
    rewritten = (file_action("remove", "4.parquet", data=False), file_action("add", "5.parquet", data=False))
    paper.commit(5, _NOW, *rewritten, operation="OPTIMIZE")
    (paper.lake / "4.parquet").unlink()
    deadline = _deadline(Paper(paper.root, f"changes: {changes}"))
    assert (deadline.version, deadline.waits, deadline.is_gone) == (5, True, False)


def test_nothing_waits_when_all_is_covered_and_before_the_first_load(paper: Paper) -> None:
    assert not _deadline(paper).waits
    paper.cover(4)
    assert (_deadline(paper).version, _deadline(paper).seconds_left) == (5, None)


@pytest.mark.parametrize("start", ["{version: 2}", "{timestamp: 1970-04-09}"])
def test_a_mirror_without_a_snapshot_waits_for_its_start_before_it_has_begun(paper: Paper, start: str) -> None:
    """Lag and retention tell of the same commit, by the same clock."""
    begins = Paper(paper.root, f"start: {start}")
    deadline, lag = _deadline(begins), table_lag(pending_commits(begins.context), _NOW)
    assert (deadline.version, deadline.waits, deadline.seconds_left, deadline.then) == (
        2,
        True,
        5 * _DAY,
        "the mirror can't begin with it, as `start` says",
    )
    assert (lag.covered, lag.commits, lag.seconds) == (1, 3, 2 * _DAY)


def test_a_start_counts_no_more_when_a_table_was_dropped(paper: Paper) -> None:
    begins = Paper(paper.root, "start: {version: 2}")
    paper.cover(4)
    drop_table(begins.context.store, TABLE, Scripted(), lambda _: None)
    assert not _deadline(begins).waits
    assert table_lag(pending_commits(begins.context), _NOW).covered == -1


@pytest.mark.parametrize("start", ["latest", "{version: 5}", "{version: 9}", "{timestamp: 1970-05-01}"])
def test_nothing_waits_for_a_start_that_is_not_there_yet(paper: Paper, start: str) -> None:
    begins = Paper(paper.root, f"start: {start}")
    assert not _deadline(begins).waits
    assert table_lag(pending_commits(begins.context), _NOW) == Lag(4, 4, 0.0)


def test_a_deleted_start_is_refused_by_the_plan_and_reported_by_retention(paper: Paper) -> None:
    begins = Paper(paper.root, "start: {version: 1}")
    DeltaTable(paper.lake, version=3).create_checkpoint()
    for version in range(3):
        commit_file(paper.lake, version).unlink()
    with raises(SettingError, ErrorCode.VERSION_REFUSED):
        plan_table(begins.context)
    said = check_retention(_deadline(begins), 1).message
    assert "version 1 was deleted from the log: the mirror can't begin with it, as `start` says" in said


def test_lag_and_retention_date_commits_by_delta_s_own_clock(paper: Paper) -> None:
    """What a writer says of a commit is as good as its clock: Delta goes by the file, or the in-commit timestamp."""
    paper.cover(1)
    os.utime(commit_file(paper.lake, 2), (_NOW - 1.5 * _DAY, _NOW - 1.5 * _DAY))
    assert _deadline(paper).committed == _NOW - 1.5 * _DAY
    assert table_lag(pending_commits(paper.context), _NOW).seconds == 1.5 * _DAY


def test_a_table_that_is_being_loaded_reads_what_follows_its_snapshot(paper: Paper) -> None:
    paper.cover(2)
    uncovered = pending_commits(paper.context)
    assert uncovered.manifest is not None
    chunk = Chunk(number=1, of=2, first=0, end=1)
    loading = replace(uncovered, manifest=uncovered.manifest.model_copy(update={"chunk": chunk, "covered": -1}))
    assert feed_deadline(paper.context, loading, _NOW).version == 3
    assert table_lag(loading, _NOW).commits == 5


def test_whether_it_rebuilds_is_the_settings_word(paper: Paper) -> None:
    assert _deadline(paper).then.startswith("the table is rebuilt")
    assert paper.context.table.on_break is OnBreak.REBUILD
    assert _deadline(Paper(paper.root, "on_break: repair")).then.startswith("the table is repaired")
    assert _deadline(Paper(paper.root, "on_break: hold")).then.startswith("the table is held")


def _age(lab: Lab, days: float) -> None:
    """Make every commit file of the source look as old as that; Delta goes by it."""
    for file in (lab.root / "lake" / "orders" / "_delta_log").glob("*.json"):
        old = file.stat().st_mtime - days * _DAY
        os.utime(file, (old, old))
    lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def test_a_commit_older_than_the_retention_of_deleted_files_lands_while_its_files_are_there(mirrored: Lab) -> None:
    """Delta's own reader would refuse it."""
    mirrored.sql("UPDATE {t} SET amount = 1 WHERE id = 2")
    _age(mirrored, 10)
    mirrored.sql("INSERT INTO {t} VALUES (700, 'x', 1)")
    assert [landed.planned.epoch for landed in mirrored.mirror()] == [1]
    assert mirrored.is_equal


NAME = "shop.orders"


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    made = Follower(tmp_path, "{}")
    made.create()
    return made


@pytest.fixture
def context(follower: Follower) -> TableContext:
    config = load_config(follower.root / "mirror.yaml")
    return compose(config, no_spark).table(config.table(NAME))


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


def test_an_unreachable_source_retains_its_values_and_their_age(
    port: int, context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.pipeline.lag._READ_SECONDS", 0.0)
    gauges().set_source(NAME, 5, 3, time.time() - 100)
    seen = value(scrape(port), "mirror_polled_time_seconds", table=NAME)
    shutil.rmtree(context.log.uri)
    gone = StopError("it is away.", "wait.", code=ErrorCode.SOURCE_UNREADABLE)
    note_poll(context, gone)
    assert exported(port) == (2, 3, 5)
    assert lag(port) > 100
    assert value(scrape(port), "mirror_polled_time_seconds", table=NAME) == seen
    note_poll(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    note_poll(context, gone)
    assert value(scrape(port), "mirror_lag_seconds", table=NAME) is None, "whether a commit waits is unknown"


def test_a_defect_of_the_gauges_is_no_defect_of_the_poll(
    port: int, context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would be lost with the poll: the table would seem to hang until the process ends."""

    def broken(_: TableContext) -> None:
        raise OSError("a page cache fault")

    monkeypatch.setattr("mirror_assets.pipeline.lag._READ_SECONDS", 0.0)
    monkeypatch.setattr("mirror_assets.pipeline.lag.pending_commits", broken)
    note_poll(context, Land())
    assert value(scrape(port), "mirror_lag_seconds", table=NAME) is None


def test_the_lag_of_a_source_that_becomes_unreachable_is_unknown(
    port: int, context: TableContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_poll(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    assert (exported(port), lag(port)) == ((0, 7, 7), 0)
    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "state", lambda *_: pytest.fail("the source was read again"))
        note_poll(context, RetryError("it does not answer.", "wait.", code=ErrorCode.SOURCE_UNAVAILABLE))
    series = scrape(port)
    assert value(series, "mirror_lag_seconds", table=NAME) is None
    assert value(series, "mirror_lag_commits", table=NAME) is None
    assert value(series, "mirror_source_version", table=NAME) == 7
    note_poll(context, Rest("quiet", QuietMark("etag", None, TipMark(7, 1, 1, 1))))
    assert lag(port) == 0


def test_each_poll_of_a_watch_updates_the_gauges(port: int, context: TableContext) -> None:
    watch = TableWatch([context], {})
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
