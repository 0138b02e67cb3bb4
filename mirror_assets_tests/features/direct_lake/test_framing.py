"""What framing keeps and loads: by example, and on random histories against whole versions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.features.direct_lake.framing import (
    FileSum,
    FramingEffect,
    LogSpan,
    committed_by,
    framing_effect,
    recent_span,
    sum_of,
    table_sizes,
)
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import parse_time
from mirror_assets.source.replay import Snapshot
from mirror_assets_tests.features.direct_lake.stories import Story, live_file, snapshot, stories, vector
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    metadata_action,
    schema_string,
    write_commit,
)

_ONE, _TWO, _THREE = live_file("1", 10, 100), live_file("2", 30, 300), live_file("3", 60, 600)


def _between(before: list[LiveFile], after: list[LiveFile]) -> FramingEffect:
    return framing_effect(
        *(snapshot(v, {file.path: file for file in files}) for v, files in enumerate((before, after)))
    )


def test_an_append_loads_new_files() -> None:
    effect = _between([_ONE, _TWO], [_ONE, _TWO, _THREE])
    assert (effect.first, effect.last) == (0, 1)
    assert effect.kept == FileSum(2, 40, bytes=400)
    assert effect.reloaded == FileSum(1, 60, bytes=600)
    assert (effect.changed, effect.dropped) == (FileSum(), FileSum())
    assert effect.reloaded_share == 0.6
    assert effect.bytes_to_load == 600


def test_a_rewrite_drops_the_old_file_and_loads_the_new_one() -> None:
    effect = _between([_ONE, _TWO], [_TWO, _THREE])
    assert (effect.kept.rows, effect.dropped.rows, effect.reloaded.rows) == (30, 10, 60)


def test_a_file_with_another_deletion_vector_is_a_class_of_its_own() -> None:
    hidden = live_file("2", 30, 300, vector("a", 6))
    effect = _between([_ONE, _TWO], [_ONE, hidden])
    assert effect.changed == FileSum(1, 24, hidden=6, bytes=300)
    assert (effect.kept.rows, effect.reloaded.files, effect.bytes_to_load) == (10, 0, 34)
    assert _between([hidden], [live_file("2", 30, 300, vector("a", 6))]).kept.files == 1
    assert _between([hidden], [live_file("2", 30, 300, vector("b", 6))]).changed.files == 1
    assert _between([hidden], [_TWO]).changed == FileSum(1, 30, bytes=300)


def test_rows_without_statistics_are_unknown() -> None:
    unknown = live_file("4", None, 50)
    effect = _between([_ONE], [_ONE, unknown])
    assert (effect.kept.rows, effect.reloaded.rows, effect.reloaded.without_rows) == (10, None, 1)
    assert (effect.total.rows, effect.reloaded_share) == (None, None)
    assert effect.bytes_to_load == 50


def test_an_empty_version_has_no_shares() -> None:
    effect = _between([_ONE], [])
    assert (effect.reloaded_share, effect.dropped.rows, effect.total.rows) == (None, 10, 0)


def _all(of: Snapshot) -> FileSum:
    return sum(map(sum_of, of.files), FileSum())


@given(stories(), st.data())
def test_every_file_is_counted_once(story: Story, data: st.DataObject) -> None:
    versions = st.integers(story.first, story.first + len(story.states) - 1)
    first, last = story.snapshot(data.draw(versions)), story.snapshot(data.draw(versions))
    effect, back = framing_effect(first, last), framing_effect(last, first)
    assert effect.kept + effect.changed + effect.reloaded == effect.total == _all(last)
    assert effect.kept.files + effect.changed.files + effect.dropped.files == len(first.files)
    assert (back.kept, back.dropped, back.reloaded) == (effect.kept, effect.reloaded, effect.dropped)
    assert back.changed.files == effect.changed.files
    before, after = ({file.path: file.vector for file in version.files} for version in (first, last))
    assert effect.kept.files == len(before.items() & after.items())
    assert effect.reloaded.files == len(after.keys() - before.keys())
    assert framing_effect(last, last).bytes_to_load == 0


@given(stories())
def test_sizes_are_those_of_whole_versions(story: Story) -> None:
    versions = range(story.first, story.first + len(story.states))
    assert list(table_sizes(story.history)) == [_all(story.snapshot(version)) for version in versions]


Stock = dict[str, int]

# Which commits' Parquet files each version reads; counted from 1, as the seed does.
_NEEDED = ({1}, {1, 2}, {2, 3}, {2, 4})
# The day of the seed's query by time, an hour apart: the query falls between the second and the third version.
_TIMES = tuple(datetime(2024, 4, 28, hour, 30, tzinfo=timezone.utc) for hour in (7, 8, 9, 10))
_QUERIED = parse_time("2024-04-28T09:15:00.000Z")


def _rows(stock: Stock) -> pa.Table:
    return pa.table({"ProductID": list(stock), "StockOnHand": pa.array(stock.values(), pa.int64())})


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table after the seed's four operations."""
    path = tmp_path_factory.mktemp("lake") / "Inventory"
    write_deltalake(path, _rows({"A": 1, "B": 2, "C": 3}))
    write_deltalake(path, _rows({"D": 4}), mode="append")
    DeltaTable(path).update(predicate="ProductID = 'C'", updates={"StockOnHand": "10"})
    DeltaTable(path).delete("ProductID = 'B'")
    for version, time in enumerate(_TIMES):
        os.utime(commit_file(path, version), (time.timestamp(), time.timestamp()))
    return path


def test_each_version_needs_its_files(inventory: Path) -> None:
    snapshots = list(DeltaLog(str(inventory)).snapshots(range(4)))
    numbers: dict[str, int] = {}
    for one in snapshots:  # each commit writes one file
        for file in one.files:
            numbers.setdefault(file.path, len(numbers) + 1)
    assert tuple({numbers[file.path] for file in one.files} for one in snapshots) == _NEEDED


def test_the_seeds_query_by_time_means_the_second_version(inventory: Path) -> None:
    log = DeltaLog(str(inventory))
    assert committed_by(log, _QUERIED.time_ms) == 1
    assert [committed_by(log, round(time.timestamp() * 1000)) for time in _TIMES] == [0, 1, 2, 3]


def test_a_refresh_keeps_files_that_still_exist(inventory: Path) -> None:
    snapshots = list(DeltaLog(str(inventory)).snapshots(range(4)))
    insert, update, delete = (framing_effect(before, after) for before, after in pairwise(snapshots))
    rows = [(e.kept.rows, e.changed.rows, e.reloaded.rows, e.dropped.rows) for e in (insert, update, delete)]
    assert rows == [(3, 0, 1, 0), (1, 0, 3, 3), (1, 0, 2, 3)]
    files = [(e.kept.files, e.reloaded.files, e.dropped.files) for e in (insert, update, delete)]
    assert files == [(1, 1, 0), (1, 1, 1), (1, 1, 1)]


def test_a_refresh_over_two_versions_keeps_product_d(inventory: Path) -> None:
    log = DeltaLog(str(inventory))
    effect = framing_effect(log.snapshot(1), log.snapshot(3))
    assert (effect.kept.rows, effect.reloaded.rows, effect.dropped.rows) == (1, 2, 3)


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
    assert _versions(recent_span(log, 0)) == list(range(first, 8))
    assert _versions(recent_span(log, log.time_ms(6))) == [6, 7]
    assert _versions(recent_span(log, log.time_ms(7))) == [7]


def _versions(span: LogSpan) -> list[int]:
    return [span.start.version, *(commit.version for commit in span.commits)]


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
