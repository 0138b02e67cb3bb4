"""Which version a time means: Delta's rule, on logs whose files were written at chosen times."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.direct_lake.log_history import committed_by
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets_tests.delta.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    metadata_action,
    schema_string,
    write_commit,
)

_SCHEMA = schema_string(column("id"))


def _log(folder: Path, written: Sequence[int], in_commit: Sequence[int] = (), **properties: str) -> TableLog:
    """A log whose commits were written at these seconds; the last ones have times of their own, in ms."""
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
    return TableLog(str(folder))


def test_a_time_is_the_last_commit_by_then(tmp_path: Path) -> None:
    log = _log(tmp_path, (1_000, 1_100, 1_050, 1_300))
    assert [log.time_ms(version) for version in log.versions()] == [1_000_000, 1_100_000, 1_100_001, 1_300_000]
    times = (999_999, 1_000_000, 1_099_999, 1_100_000, 1_100_001, 1_299_999, 1_300_000, 1_300_001)
    assert [committed_by(log, time) for time in times] == [None, 0, 0, 1, 2, 2, 3, 3]


def test_in_commit_timestamps_that_begin_late_do_not_mix_with_times_of_files(tmp_path: Path) -> None:
    """The older commits' files were copied, so they look newer than all that came after them."""
    log = _log(
        tmp_path,
        (9_000, 9_001, 9_002, 9_003),
        (2_000_000, 2_500_000),
        **{
            "delta.enableInCommitTimestamps": "true",
            "delta.inCommitTimestampEnablementVersion": "2",
            "delta.inCommitTimestampEnablementTimestamp": "2000000",
        },
    )
    assert [committed_by(log, time) for time in (1_999_999, 2_000_000, 2_400_000, 2_500_000)] == [None, 2, 2, 3]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(-1, 50))
def test_the_rule_is_that_of_a_plain_search(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], at: int
) -> None:
    log, time = _log(tmp_path_factory.mktemp("log"), [1_000 + step for step in steps]), (1_000 + at) * 1000
    times = [log.time_ms(version) for version in log.versions()]
    assert times == sorted(set(times))
    assert committed_by(log, time) == max((version for version, then in enumerate(times) if then <= time), default=None)


def test_a_time_in_a_hole_is_none_that_the_log_can_tell(tmp_path: Path) -> None:
    """Commit 2 is lost: until the next one, the newest may be 1 or 2; then it is 3, which can't be put together."""
    write_deltalake(tmp_path, pa.table({"id": [0]}))
    for version in range(1, 6):
        write_deltalake(tmp_path, pa.table({"id": [version]}), mode="append")
    DeltaTable(tmp_path, version=4).create_checkpoint()
    for version in range(6):
        os.utime(commit_file(tmp_path, version), (version + 1, version + 1))
    commit_file(tmp_path, 2).unlink()
    log = TableLog(str(tmp_path))
    assert log.versions() == (0, 1, 4, 5)
    assert [committed_by(log, time) for time in (1_999, 2_000, 2_001, 3_999, 4_000, 5_000)] == [0, 1, None, None, 3, 4]
