"""The log of real tables: where a span begins, its maintenance, and the version of a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.features.direct_lake.framing import committed_by, framing_effect, framing_series, recent_span
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    metadata_action,
    schema_string,
    write_commit,
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three appends, OPTIMIZE, a checkpoint, an append, RESTORE to the third append, VACUUM."""
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number, number + 10]}), mode="append")
    DeltaTable(tmp_path).optimize.compact()
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, pa.table({"id": [99]}), mode="append")
    DeltaTable(tmp_path).restore(2)
    DeltaTable(tmp_path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    return tmp_path


def test_maintenance_is_named_and_changes_no_row(table: Path) -> None:
    log = DeltaLog(str(table))
    history = recent_span(log, 0)
    assert history.every_version() == tuple(range(8))
    assert history.maintenance(0, 7) == ("OPTIMIZE", "RESTORE", "VACUUM")
    assert [history.maintenance(version - 1, version) for version in (3, 5, 7)] == [
        ("OPTIMIZE",),
        ("RESTORE",),
        ("VACUUM",),
    ]
    optimize, restore, vacuum = (framing_effect(*log.snapshots([version - 1, version])) for version in (3, 5, 7))
    assert (optimize.kept.rows, optimize.reloaded.rows, optimize.dropped.rows) == (0, 6, 6)
    assert (restore.kept.rows, restore.reloaded.rows, restore.dropped.rows) == (0, 6, 7)
    assert (vacuum.kept.rows, vacuum.reloaded.rows, vacuum.dropped.rows) == (6, 0, 0)
    assert framing_effect(log.snapshot(2), log.snapshot(7)).kept.rows == 6


@pytest.mark.parametrize(
    ("missing", "first"),
    [
        ((0, 1, 2), 3),  # a cleaned log begins at its checkpoint
        ((3,), 3),  # all versions can be read, but the actions of commit 3 are unknown
        ((1,), 3),  # versions 1 and 2 can't be read
    ],
)
def test_a_span_begins_after_the_last_gap(table: Path, missing: Sequence[int], first: int) -> None:
    for version in missing:
        commit_file(table, version).unlink()
    log = DeltaLog(str(table))
    assert recent_span(log, 0).every_version() == tuple(range(first, 8))
    assert recent_span(log, log.time_ms(6)).first == 6


def test_one_version_is_a_span(table: Path) -> None:
    log = DeltaLog(str(table))
    history = recent_span(log, log.time_ms(7))
    assert history.every_version() == history.daily_versions() == (7,)
    assert framing_series(log, history) == ()


_SCHEMA = schema_string(column("id"))


def _log(folder: Path, written: Sequence[int], in_commit: Sequence[int] = (), **properties: str) -> DeltaLog:
    """A log whose commits were written at these seconds; the last ones have in-commit timestamps, in ms."""
    without = len(written) - len(in_commit)
    for version, seconds in enumerate(written):
        info: Action = {"timestamp": 7}
        if version >= without:
            info["inCommitTimestamp"] = in_commit[version - without]
        actions: list[Action] = [{"commitInfo": info}]
        if version == 0:
            actions += [PROTOCOL, metadata_action(_SCHEMA, **properties)]
        write_commit(folder, version, actions)
        os.utime(commit_file(folder, version), (seconds, seconds))
    return DeltaLog(str(folder))


def test_a_time_means_the_last_commit_before_it(tmp_path: Path) -> None:
    log = _log(tmp_path, (1_000, 1_100, 1_050, 1_300))
    assert [log.time_ms(version) for version in log.versions()] == [1_000_000, 1_100_000, 1_100_001, 1_300_000]
    times = (999_999, 1_000_000, 1_099_999, 1_100_000, 1_100_001, 1_299_999, 1_300_000, 1_300_001)
    assert [committed_by(log, time) for time in times] == [None, 0, 0, 1, 2, 2, 3, 3]


def test_in_commit_timestamps_that_begin_late_do_not_mix_with_times_of_files(tmp_path: Path) -> None:
    """The older commits' files were copied, so their times are later than those of all newer commits."""
    log = _log(
        tmp_path,
        (9_000, 9_001, 9_002, 9_003, 9_004),
        (2_000_000, 2_500_000),
        **{
            "delta.enableInCommitTimestamps": "true",
            "delta.inCommitTimestampEnablementVersion": "3",
            "delta.inCommitTimestampEnablementTimestamp": "2000000",
        },
    )
    assert [committed_by(log, time) for time in (1_999_999, 2_000_000, 2_400_000, 2_500_000)] == [None, 3, 3, 4]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(-1, 50))
def test_the_version_of_a_time_is_that_of_a_plain_search(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], at: int
) -> None:
    log, time = _log(tmp_path_factory.mktemp("log"), [1_000 + step for step in steps]), (1_000 + at) * 1000
    times = [log.time_ms(version) for version in log.versions()]
    assert times == sorted(set(times))
    assert committed_by(log, time) == max((version for version, then in enumerate(times) if then <= time), default=None)


def test_a_time_in_a_gap_has_no_certain_version(tmp_path: Path) -> None:
    """Commit 2 is missing: until commit 3, the newest may be 1 or 2; then it is 3, which can't be reconstructed."""
    write_deltalake(tmp_path, pa.table({"id": [0]}))
    for version in range(1, 6):
        write_deltalake(tmp_path, pa.table({"id": [version]}), mode="append")
    DeltaTable(tmp_path, version=4).create_checkpoint()
    for version in range(6):
        os.utime(commit_file(tmp_path, version), (version + 1, version + 1))
    commit_file(tmp_path, 2).unlink()
    log = DeltaLog(str(tmp_path))
    assert log.versions() == (0, 1, 4, 5)
    assert [committed_by(log, time) for time in (1_999, 2_000, 2_001, 3_999, 4_000, 5_000)] == [0, 1, None, None, 3, 4]
