"""When commits were made, by Delta's own clock."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import CommitTimes, increasing
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
    assert times.first_from(time) == next((version for version in made if made[version] >= time), None)
    assert times.last_until(time) == max((version for version in made if made[version] <= time), default=None)
    assert sorted(set(made.values())) == list(made.values())


def _log(folder: Path, **configuration: str) -> DeltaLog:
    """Four commits, written 100 s apart, whose own times say otherwise; the third was written before the second."""
    for version, written in enumerate((1_000, 1_100, 1_050, 1_300)):
        info: Action = {"commitInfo": {"timestamp": 7, "inCommitTimestamp": 5_000 + version}}
        actions: list[Action] = [info, PROTOCOL, metadata_action(_SCHEMA, **configuration)]
        write_commit(folder, version, actions if version == 0 else [info])
        os.utime(commit_file(folder, version), (written, written))
    return DeltaLog(str(folder))


def test_commits_are_dated_by_their_files_one_after_another(tmp_path: Path) -> None:
    log = _log(tmp_path)
    times = log.times(log.state())
    assert [times.at(version) for version in range(4)] == [1_000_000, 1_100_000, 1_100_001, 1_300_000]


def test_in_commit_timestamps_count_more_than_files(tmp_path: Path) -> None:
    log = _log(tmp_path, **{"delta.enableInCommitTimestamps": "true"})
    times = log.times(log.state())
    assert [times.at(version) for version in range(4)] == [5_000, 5_001, 5_002, 5_003]
    assert (times.first_from(5_002), times.first_from(5_004), times.last_until(4_999)) == (2, None, None)


def test_in_commit_timestamps_count_from_where_they_were_switched_on_last(tmp_path: Path) -> None:
    """Off for a while: what older commits say of themselves counts no more."""
    log = _log(tmp_path, **{"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "2"})
    times = log.times(log.state())
    assert [times.at(version) for version in range(4)] == [1_000_000, 1_100_000, 5_002, 5_003]


def test_a_cleaned_log_begins_later(tmp_path: Path) -> None:
    log = _log(tmp_path)
    state = log.state()
    commit_file(tmp_path, 1).unlink()
    times = log.times(state)
    assert (times.first, times.last, times.at(2)) == (2, 3, 1_050_000)
