"""Chunks of a version's files, parts of a slice, and the files that comparing versions reads.

The cuts into slices have their properties in test_plan.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.actions import Actions, LiveFile
from mirror_assets.source.batching import (
    Compared,
    DifferingFiles,
    Limits,
    PartAssignment,
    assign_parts,
    chunk_files,
    is_small,
    parts_for,
    rows_of_part,
)
from mirror_assets.source.commits import Commit, FileVersion
from mirror_assets.source.errors import LogGap
from mirror_assets.source.live_file_columns import LiveFileColumns, named_files
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.source.handmade import change, commit_file

_FILE = LiveFile("f", 0, None, 0, {}, None, {})
_FILES = st.lists(
    st.builds(replace, st.just(_FILE), bytes=st.integers(0, 300), rows=st.none() | st.integers(0, 30)), min_size=1
)
_LIMITS = st.builds(
    Limits, st.just(1), st.integers(1, 80), st.integers(1, 900), max_files=st.integers(1, 6) | st.just(100)
)


def _columns(files: list[LiveFile]) -> LiveFileColumns:
    added = [replace(file, path=f"{at:06}") for at, file in enumerate(files)]
    return LiveFileColumns(named_files(Actions(added=tuple(added))))


@given(_FILES, _LIMITS)
def test_every_file_is_in_one_chunk_that_is_as_long_as_it_may_be(files: list[LiveFile], limits: Limits) -> None:
    chunks = chunk_files(_columns(files), limits)
    assert [index for chunk in chunks for index in range(chunk.first, chunk.end)] == list(range(len(files)))
    assert [(chunk.number, chunk.of) for chunk in chunks] == [(n, len(chunks)) for n in range(1, len(chunks) + 1)]
    for chunk in chunks:
        held = files[chunk.first : chunk.end]
        assert (chunk.rows, chunk.bytes) == (sum(f.likely_rows for f in held), sum(f.bytes for f in held))
        assert len(held) == 1 or (chunk.rows <= limits.max_rows and chunk.bytes <= limits.max_bytes)
        assert len(held) <= limits.max_files
    for before, after in pairwise(chunks):
        following = files[after.first]
        too_long = before.rows + following.likely_rows > limits.max_rows
        is_full = before.end - before.first == limits.max_files
        assert too_long or is_full or before.bytes + following.bytes > limits.max_bytes


@given(_FILES, _LIMITS, st.data())
def test_who_goes_on_behind_any_chunk_cuts_the_same(files: list[LiveFile], limits: Limits, data: st.DataObject) -> None:
    chunks = chunk_files(_columns(files), limits)
    landed = data.draw(st.integers(0, len(chunks) - 1))
    end = chunks[landed - 1].end if landed else 0
    assert chunk_files(_columns(files), limits, chunks=landed, landed=end) == chunks[landed:]


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Three files of ten rows each, the first of which the last commit rewrites."""
    for first in (0, 10, 20):
        write_deltalake(tmp_path / "t", pa.table({"id": list(range(first, first + 10))}), mode="append")
    DeltaTable(tmp_path / "t").update(predicate="id = 1", updates={"id": "100"})
    return DeltaLog(str(tmp_path / "t"))


def test_the_files_of_a_version_are_those_that_lived_then(log: DeltaLog) -> None:
    before, now = log.live_file_columns(2), log.live_file_columns(3)
    assert before.likely_rows.tolist() == [10, 10, 10]
    paths = before.named["path"].to_pylist()
    assert paths == sorted(paths)
    assert len(before.identities(0, 3) | now.identities(0, 3)) == 4
    assert before.bytes.sum() == log.state(2).bytes


def test_a_version_that_is_not_in_the_log_any_more_has_no_files(log: DeltaLog, tmp_path: Path) -> None:
    commit_file(tmp_path / "t", 1).unlink()
    with pytest.raises(LogGap):
        log.live_file_columns(2)


@pytest.mark.parametrize(
    ("limits", "small"),
    [((30, 10**6, 3), True), ((29, 10**6, 3), False), ((30, 100, 3), False), ((30, 10**6, 2), False)],
)
def test_a_table_below_all_limits_is_small(log: DeltaLog, limits: tuple[int, int, int], *, small: bool) -> None:
    rows, size, files = limits
    assert is_small(log.state(), Limits(1, rows, size, max_files=files)) is small


def test_small_commits_share_a_part_and_large_ones_have_their_own() -> None:
    rows = [4, 6, 1, 25, 5, 0, 5, 10, 11, 12]
    mixing = [replace(change(version, rows=n), mixes=True) for version, n in enumerate(rows)]
    assignments = assign_parts(mixing, 10)
    assert assignments == (
        PartAssignment(0, 0, 1),
        PartAssignment(1, 0, 1),
        PartAssignment(2, 1, 1),
        PartAssignment(3, 2, 3),
        PartAssignment(4, 5, 1),
        PartAssignment(6, 5, 1),
        PartAssignment(7, 6, 1),
        PartAssignment(8, 7, 2),
        PartAssignment(9, 9, 2),
    )


def test_a_commit_that_needs_no_pairing_has_parts_to_itself_from_an_eighth_of_one_on() -> None:
    commits = [change(version, rows=n) for version, n in enumerate([1, 3, 1, 1, 2, 33])]
    assert assign_parts(commits, 16) == (
        PartAssignment(0, 0, 1),
        PartAssignment(1, 1, 1, unpaired=True),
        PartAssignment(2, 2, 1),
        PartAssignment(3, 2, 1),
        PartAssignment(4, 2, 1),
        PartAssignment(5, 3, 3, unpaired=True),
    )


def test_a_commit_whose_rows_are_guessed_as_none_still_has_a_part() -> None:
    assert assign_parts([Commit(3, 0, "RESTORE", changes_data=True)], 10) == (PartAssignment(3, 0, 1),)


@pytest.mark.parametrize(("rows", "parts"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (10**15, 100_000)])
def test_parts_for_rows(rows: int, parts: int) -> None:
    assert parts_for(rows, 10) == parts


@pytest.mark.parametrize(
    ("columns", "rows"),
    [(0, 1_000_000), (1, 1_000_000), (25, 1_000_000), (26, 961_538), (250, 100_000), (30_000_000, 1)],
)
def test_the_parts_of_a_wide_table_hold_fewer_rows(columns: int, rows: int) -> None:
    assert rows_of_part(1_000_000, columns) == rows
    assert rows_of_part(10, 250) == 10


def file(path: str, rows: int = 10, vector: str | None = None) -> FileVersion:
    return FileVersion(path, vector, rows, bytes=100)


def commit(
    version: int, added: tuple[FileVersion, ...] = (), removed: tuple[FileVersion, ...] = (), *, rewrites: bool = False
) -> Commit:
    changes = bool(added or removed) and not rewrites
    return Commit(version, 0, "WRITE", changes, rows=int(changes), added=added, removed=removed)


def read(*commits: Commit) -> tuple[Compared | None, int]:
    found = DifferingFiles(commits)
    return found.compared(), found.rows


def test_a_file_that_comes_and_goes_is_not_read() -> None:
    commits = commit(5, (file("b"),), (file("a"),)), commit(6, (file("c"),), (file("b"),))
    assert read(*commits) == (Compared(4, 6, files=2, bytes=200), 20)
    back = commit(7, (file("a"),), (file("c"),))  # a RESTORE
    assert read(*commits, back) == (Compared(4, 7, files=0, bytes=0), 0)


def test_of_a_file_with_another_vector_the_rows_between_are_read() -> None:
    hidden = commit(5, (file("a", 7, "v1"),), (file("a"),)), commit(6, (file("a", 4, "v2"),), (file("a", 7, "v1"),))
    assert read(*hidden) == (Compared(4, 6, files=1, bytes=100), 6)
    gone = commit(7, removed=(file("a", 4, "v2"),))
    assert read(*hidden, gone) == (Compared(4, 7, files=1, bytes=100), 10)


def test_commits_that_only_rewrite_rows_cost_nothing_at_the_ends() -> None:
    before = commit(5, (file("b"),), (file("a"),), rewrites=True)
    change = commit(6, (file("c"),))
    after = commit(7, (file("d"),), (file("b"), file("c")), rewrites=True)
    assert read(before, change, after) == (Compared(5, 6, files=1, bytes=100), 10)
    assert read(before, after) == (None, 0)
    assert DifferingFiles((change, after)).mixes_rewrites is False
    between = DifferingFiles((change, after, commit(8, (file("e"),))))
    assert (between.mixes_rewrites, between.compared()) == (True, Compared(5, 8, files=3, bytes=300))
