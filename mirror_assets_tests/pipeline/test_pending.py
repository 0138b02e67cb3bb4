"""The horizon of a table, from its log; and what a run does behind it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from mirror_assets.config.setting_values import OnBreak
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.format import Chunk
from mirror_assets.pipeline.pending import feed_deadline, pending_commits, table_lag
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.rebuild_table import MirrorWait, drop_table
from mirror_assets.source.errors import LogGap
from mirror_assets.verify.timeliness import Consequence, Lag, ReadDeadline, check_retention
from mirror_assets_tests.errors import raises
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.pipeline.paper import TABLE, Paper
from mirror_assets_tests.source.handmade import commit_file, file_action

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
        Consequence.REFUSED,
    )
    assert (lag.covered, lag.commits, lag.seconds) == (1, 3, 2 * _DAY)


def test_a_start_counts_no_more_when_a_table_was_dropped(paper: Paper) -> None:
    begins = Paper(paper.root, "start: {version: 2}")
    paper.cover(4)
    drop_table(begins.context.store, TABLE, MirrorWait(lambda: True, lambda: True), lambda _: None)
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
    assert _deadline(paper).then is Consequence.REBUILT
    assert paper.context.table.on_break is OnBreak.REBUILD
    assert _deadline(Paper(paper.root, "on_break: repair")).then is Consequence.REPAIRED
    assert _deadline(Paper(paper.root, "on_break: hold")).then is Consequence.HELD


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


def test_a_commit_that_was_cleaned_up_is_rebuilt_or_held(mirrored: Lab) -> None:
    mirrored.sql("UPDATE {t} SET amount = 1 WHERE id = 2", "INSERT INTO {t} VALUES (700, 'x', 1)")
    DeltaTable(mirrored.uri, version=7).create_checkpoint()
    for version in range(7):
        commit_file(Path(mirrored.uri), version).unlink()
    _age(mirrored, 0)
    mirrored.configure("on_break: hold")
    with pytest.raises(LogGap, match="commit 6"):
        mirrored.mirror()
    mirrored.configure()
    assert feed_deadline(mirrored.context, pending_commits(mirrored.context), _NOW).is_gone
    mirrored.mirror()
    assert (mirrored.manifest().epoch, mirrored.manifest().covered) == (2, 7)
    assert mirrored.is_equal
