"""Whom the guard asks before VACUUM takes a file of the source: frames, the mirror and the history."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.features.direct_lake.consumers import source_consumers, table_frames
from mirror_assets.features.direct_lake.direct_lake_settings import FramesOf
from mirror_assets.features.direct_lake.vacuum import VacuumPlan, plan_vacuum
from mirror_assets.features.history.history_log import APPLICATION, HistoryCommit
from mirror_assets.features.history.opening import history_uri
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.errors import raises
from mirror_assets_tests.pipeline.paper import TABLE, Paper
from mirror_assets_tests.source.handmade import Action, commit_file, write_commit

_DAY = 86_400.0


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    """Four versions of which the mirror has covered the second."""
    made = Paper(tmp_path)
    made.create(time.time() - 9 * _DAY)
    for version in (1, 2, 3):
        made.commit(version, time.time() - (9 - version) * _DAY)
    made.cover(1)
    return made


def _guard(paper: Paper, settings: str = "") -> VacuumPlan:
    config, table = _configured(paper, settings)
    log = DeltaLog(str(paper.lake))
    return plan_vacuum(log, time.time(), *source_consumers(config, table, log, paper.context.manifest()))


def _configured(paper: Paper, settings: str) -> tuple[Config, TableSettings]:
    config = replace(paper, settings=settings).config
    return config, config.table(TABLE)


def test_the_mirror_needs_what_it_has_not_covered(paper: Paper) -> None:
    assert _guard(paper).oldest_needed == 2
    assert _guard(paper, "direct_lake: {frames: [1]}").oldest_needed == 1
    assert _guard(paper, "direct_lake: {frames: [1], frames_of: mirror}").oldest_needed == 2


def test_a_mirror_that_has_yet_to_begin_needs_its_start(tmp_path: Path) -> None:
    paper, began = Paper(tmp_path), time.time() - 9 * _DAY
    for version in range(4):
        paper.create(began) if version == 0 else paper.commit(version, began + version * _DAY)
    second = datetime.fromtimestamp(began + _DAY + 1, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    starts = ("{version: 1}", "{version: 0}", f'{{timestamp: "{second}"}}', '{timestamp: "1999-12-31"}', "latest")
    assert [_guard(paper, f"start: {start}").oldest_needed for start in starts] == [1, 0, 2, 0, None]
    assert _guard(paper, "start: {version: 9}").oldest_needed is None


def test_of_a_source_with_fewer_commits_than_are_covered_nothing_is_needed(paper: Paper) -> None:
    for version in (3, 2, 1):
        next(paper.lake.glob(f"_delta_log/*{version}.json")).unlink()
    assert _guard(paper).oldest_needed is None


def test_a_history_that_stands_behind_a_gap_leaves_the_mirror_its_files(paper: Paper) -> None:
    """It goes on behind the gap when it is told to, and the mirror, which is further, at once."""
    _keep(paper, 0)
    DeltaTable(paper.lake, version=2).create_checkpoint()
    commit_file(paper.lake, 1).unlink()
    for version in (2, 3):
        (paper.lake / f"{version}.parquet").unlink()
    plan = _guard(paper, "history: slices")
    assert [(file.path, file.needed_by[0].version) for file in plan.lost] == [("2.parquet", 2), ("3.parquet", 3)]
    assert [need.version for need in plan.gone] == [1]


def test_a_history_of_another_table_leaves_the_mirror_its_files(paper: Paper) -> None:
    _keep(paper, 100)
    assert _guard(paper, "history: slices").oldest_needed == 2


def _keep(paper: Paper, last: int) -> None:
    """Say in a history's log that it has kept everything up to the version."""
    kept = HistoryCommit(1, "table-1", 0, last, "a")
    info: Action = {"commitInfo": {"userMetadata": kept.text}}
    write_commit(Path(history_uri(paper.config, TABLE)), 0, [info, {"txn": {"appId": APPLICATION, "version": 1}}])


def test_frames_that_can_not_be_are_refused(paper: Paper) -> None:
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="its newest version is 3"):
        _guard(paper, "direct_lake: {frames: [4]}")
    unreadable = r"answer\.csv has no readable frames of a model: it can't be read"
    with raises(SettingError, ErrorCode.CONFIG_INVALID, match=unreadable):
        _guard(paper, "direct_lake: {exports: [answer.csv]}")


def test_frames_are_named_by_version_and_time(paper: Paper) -> None:
    _, table = _configured(paper, "direct_lake: {frames: [2, 2999-01-01]}")
    frames = table_frames(table, FramesOf.SOURCE, DeltaLog(str(paper.lake)))
    assert [frame.version for frame in frames] == [2, 3]
