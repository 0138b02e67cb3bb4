"""Which files are put together: Delta's rules by example, and what holds for any files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.direct_lake.maintenance.bins import (
    FileSizes,
    clustering_bins,
    compaction_bins,
    purge_bins,
    sizes_for,
)
from mirror_assets.direct_lake.table.values import LiveFile
from mirror_assets_tests.direct_lake.maintenance.tables import file

_SIZES = FileSizes(min_bytes=50, max_bytes=100)
_GIB = 2**30


def _sizes(*sizes: int) -> list[LiveFile]:
    return [file(f"{number}", size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "bins"),
    [
        ((40, 10, 30, 20), [[10, 20, 30, 40]]),
        ((40, 45, 30), [[30, 40]]),
        ((49, 49, 49, 49), [[49, 49], [49, 49]]),
        ((50, 60, 10), []),
        ((10,), []),
        ((), []),
    ],
)
def test_small_files_fill_bins_from_the_smallest_on(sizes: tuple[int, ...], bins: list[list[int]]) -> None:
    found = compaction_bins(_sizes(*sizes), _SIZES)
    assert [[one.bytes for one in made.files] for made in found] == bins


def test_large_files_are_taken_for_their_hidden_rows() -> None:
    full, few, many, unknown = file("full", 60), file("few", 60, hidden=5), file("many", 30), file("x", 60, rows=None)
    assert compaction_bins([full, few, many, unknown], _SIZES) == ()
    hidden, untold = file("hidden", 60, hidden=6), file("untold", 65, rows=None, hidden=1)
    assert [made.files for made in compaction_bins([full, few, many, hidden], _SIZES)] == [(many, hidden)]
    assert [made.files for made in compaction_bins([full, many, untold], _SIZES)] == [(many, untold)]


def test_a_single_file_is_purged_and_not_optimised() -> None:
    one = file("one", 60, hidden=50)
    assert compaction_bins([one], _SIZES) == ()
    assert [made.files for made in purge_bins([one], _SIZES)] == [(one,)]


def test_nothing_is_written_for_rows_that_are_all_hidden() -> None:
    found = purge_bins([file("a", 10, hidden=100), file("b", 20, hidden=100)], _SIZES)
    assert [made.makes for made in found] == [0]


_FILES = st.lists(
    st.builds(
        file,
        st.uuids().map(str),
        st.integers(0, 150),
        st.none() | st.integers(10, 20),
        st.integers(0, 10),
    ),
    unique_by=lambda one: one.path,
)


@given(_FILES)
def test_bins_share_no_file_and_hold_no_more_than_a_file_should(files: list[LiveFile]) -> None:
    bins = compaction_bins(files, _SIZES)
    taken = [one.path for made in bins for one in made.files]
    assert len(taken) == len(set(taken))
    for made in bins:
        assert len(made.files) > 1
        assert sum(one.bytes for one in made.files) <= _SIZES.max_bytes
        assert all(one.bytes < _SIZES.min_bytes or one.vector for one in made.files)


@given(_FILES)
def test_a_purge_takes_each_file_once(files: list[LiveFile]) -> None:
    taken = [one.path for made in purge_bins(files, _SIZES) for one in made.files]
    assert sorted(taken) == sorted(one.path for one in files)


def test_new_files_are_clustered_with_all_small_cubes() -> None:
    old, new = [file(f"old{number}", _GIB, cube="a") for number in range(3)], file("new", 5)
    (made,) = clustering_bins([*old, new], FileSizes())
    assert ({one.path for one in made.files}, made.makes) == ({"old0", "old1", "old2", "new"}, 3)


def test_one_cube_is_left_alone_and_so_are_large_ones() -> None:
    cube = [file(f"{number}", _GIB, cube="a") for number in range(3)]
    assert clustering_bins(cube, FileSizes()) == ()
    large = [file(f"large{number}", _GIB, cube="b") for number in range(100)]
    assert clustering_bins([*cube, *large], FileSizes()) == ()
    (made,) = clustering_bins([*cube, *large, file("other", 7, cube="c")], FileSizes())
    assert {one.path for one in made.files} == {"0", "1", "2", "other"}


def test_a_cube_is_no_larger_than_150_gib() -> None:
    found = clustering_bins([file(f"{number}", 40 * _GIB) for number in range(7)], FileSizes())
    assert [len(made.files) for made in found] == [3, 3, 1]
    assert [made.makes for made in found] == [120, 120, 40]


@pytest.mark.parametrize(
    ("table", "target"),
    [(0, 128 * 2**20), (10 * _GIB, 128 * 2**20), (5125 * _GIB, 576 * 2**20), (2**44, _GIB), (10 * 2**40, _GIB)],
)
def test_a_larger_table_has_larger_files(table: int, target: int) -> None:
    assert sizes_for(table) == FileSizes(target // 2, target)


def test_only_what_is_not_deltas_default_has_to_be_set() -> None:
    assert FileSizes().statements() == ()
    assert FileSizes(max_deleted=0.5).statements() == ("SET spark.databricks.delta.optimize.maxDeletedRowsRatio = 0.5",)
    assert FileSizes(10, 20).statements() == (
        "SET spark.databricks.delta.optimize.minFileSize = 10",
        "SET spark.databricks.delta.optimize.maxFileSize = 20",
    )
