"""When commits were made, by Delta's own clock."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.features.direct_lake.framing import committed_by
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import CommitTimes, TimePoint, increasing
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    metadata_action,
    schema_string,
    write_commit,
)

_SCHEMA = schema_string(column("id"))


@given(st.integers(0, 5), st.lists(st.integers(0, 30), min_size=1), st.integers(-1, 40))
def test_a_time_is_found_between_the_commits_around_it(first: int, written: list[int], time: int) -> None:
    times = CommitTimes(first, increasing(written))
    made = {version: times.at(version) for version in range(first, times.last + 1)}
    assert times.first_from(TimePoint(time)) == next((version for version in made if made[version] >= time), None)
    assert times.last_until(TimePoint(time)) == max(
        (version for version in made if made[version] <= time), default=None
    )
    assert sorted(set(made.values())) == list(made.values())


def _log(folder: Path, configuration: dict[str, str], own: Collection[int] = range(4)) -> DeltaLog:
    """Four commits, written 100 s apart, the third before the second; those in `own` have in-commit timestamps."""
    for version, written in enumerate((1_000, 1_100, 1_050, 1_300)):
        time = {"inCommitTimestamp": 5_000 + version} if version in own else {}
        info: Action = {"commitInfo": {"timestamp": 7, **time}}
        actions: list[Action] = [info, PROTOCOL, metadata_action(_SCHEMA, **configuration)]
        write_commit(folder, version, actions if version == 0 else [info])
        os.utime(commit_file(folder, version), (written, written))
    return DeltaLog(str(folder))


_ON = {"delta.enableInCommitTimestamps": "true"}


@pytest.mark.parametrize(
    ("configuration", "own", "dated"),
    [
        ({}, range(4), [1_000_000, 1_100_000, 1_100_001, 1_300_000]),
        (_ON, range(4), [5_000, 5_001, 5_002, 5_003]),
        (_ON, range(2, 4), [1_000_000, 1_100_000, 5_002, 5_003]),
        # Switched off and on again: timestamps of older commits do not count (Delta 4.4's DESCRIBE HISTORY).
        (
            {**_ON, "delta.inCommitTimestampEnablementVersion": "2"},
            range(4),
            [1_000_000, 1_100_000, 5_002, 5_003],
        ),
    ],
)
def test_commits_are_dated_by_deltas_clock(
    tmp_path: Path, configuration: dict[str, str], own: range, dated: list[int]
) -> None:
    log = _log(tmp_path, configuration, own)
    times = log.times(log.state())
    assert [times.at(version) for version in range(4)] == dated
    assert [log.time_ms(version) for version in range(4)] == dated
    assert [snapshot.timestamp_ms for snapshot in log.snapshots(range(4))] == dated
    assert [commit.timestamp_ms for commit in log.logged_commits(0, 3)] == dated


def test_times_are_found_by_in_commit_timestamps(tmp_path: Path) -> None:
    log = _log(tmp_path, _ON)
    times = log.times(log.state())
    assert (times.first_from(TimePoint(5_002)), times.first_from(TimePoint(5_004))) == (2, None)
    assert times.last_until(TimePoint(4_999)) is None
    assert [committed_by(log, at) for at in (4_999, 5_001, 9_000)] == [None, 1, 3]


def test_a_cleaned_log_begins_later(tmp_path: Path) -> None:
    log = _log(tmp_path, {})
    state = log.state()
    commit_file(tmp_path, 1).unlink()
    times = log.times(state)
    assert (times.first, times.last, times.at(2)) == (2, 3, 1_050_000)
