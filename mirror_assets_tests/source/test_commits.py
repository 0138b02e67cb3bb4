from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mirror_assets.source.actions import Actions, ChangeFile, CommitInfo, LiveFile, LoggedFile, Tombstone, Vector
from mirror_assets.source.commits import FOOTERS_PER_COMMIT, RowCount, count_rows, describe, sampled_rows


def _file(path: str, *, size: int = 1000, records: int | None = None, deleted: int = 0) -> LiveFile:
    vector = Vector(f"i{deleted}", None, 1, deleted) if deleted else None
    return LiveFile(path, size, records, 0, {}, vector, {})


def _actions(
    operation: str = "",
    added: Sequence[LiveFile] = (),
    removed: Sequence[LiveFile] = (),
    change_files: Sequence[LiveFile] = (),
) -> Actions:
    """A commit with these files."""
    return Actions(
        added=tuple(added),
        removed=tuple(Tombstone(file.path, file.vector, 0, file.bytes, file.rows) for file in removed),
        change_files=tuple(ChangeFile(file.path, file.bytes) for file in change_files),
        info=CommitInfo(operation),
    )


def _no_footer(action: LoggedFile) -> int | None:
    raise AssertionError(f"the footer of {action.path} is not needed")


def _gone(_action: LoggedFile) -> int | None:
    return None


def test_change_files_are_estimated_by_the_bytes_per_row_of_the_data_files() -> None:
    """No footer is read: only the sizes of parts depend on the estimate."""
    added, removed = (_file("a", size=5000, records=500),), (_file("r", size=5100, records=510),)
    commit = _actions(added=added, removed=removed, change_files=(_file("c", size=300), _file("d", size=100)))
    assert count_rows(commit, _no_footer) == RowCount(40, exact=False)


@pytest.mark.parametrize(("change_bytes", "rows"), [(1, 10), (90_000, 1010)])
def test_the_estimate_stays_within_what_the_data_files_allow(change_bytes: int, rows: int) -> None:
    """At least as many rows as the numbers of the data files differ, at most all old and new ones."""
    added, removed = (_file("a", size=5000, records=500),), (_file("r", size=5100, records=510),)
    commit = _actions(added=added, removed=removed, change_files=(_file("c", size=change_bytes),))
    assert count_rows(commit, _no_footer).rows == rows


def test_change_files_beside_no_statistics_are_sampled() -> None:
    commit = _actions(added=(_file("a"),), change_files=(_file("c"),))
    assert count_rows(commit, lambda _: 5) == RowCount(5, exact=False)
    assert count_rows(commit, _gone) == RowCount(10, exact=False)


def test_data_files_are_counted_by_statistics_less_deleted_rows() -> None:
    commit = _actions(added=(_file("a", records=10, deleted=3),), removed=(_file("b", records=5, deleted=1),))
    assert count_rows(commit, _no_footer) == RowCount(11)


def test_a_file_that_one_commit_names_twice_counts_once() -> None:
    """Some writers remove a file twice (delta-io/delta#3784)."""
    removed = _file("b", records=5)
    commit = _actions(added=(_file("a", records=10),), removed=(removed, removed))
    assert count_rows(commit, _no_footer) == RowCount(15)
    assert describe(0, _actions(removed=(removed, removed)), 0, _no_footer).rows == 5


def test_two_vectors_of_one_file_yield_their_difference() -> None:
    """After a RESTORE neither need hold the other (observed: both hide 2 rows, and the feed yields 2)."""
    added, removed = (_file("a", records=10, deleted=7),), (_file("a", records=10, deleted=2),)
    assert count_rows(_actions(added=added, removed=removed), _no_footer) == RowCount(5)
    restored = _actions(added=removed, removed=added)
    assert count_rows(restored, _no_footer) == RowCount(5, exact=False)


def test_a_removed_file_without_statistics_is_counted_by_its_footer() -> None:
    commit = _actions(added=(_file("a", records=10),), removed=(_file("b", deleted=1),))
    assert count_rows(commit, lambda _: 5) == RowCount(14)
    assert count_rows(commit, _gone) == RowCount(20, exact=False)


@pytest.mark.parametrize("operation", ["MERGE", "", "OPTIMIZE"])
def test_a_commit_changes_data_if_its_actions_say_so(operation: str) -> None:
    """Whatever its operation is called: metrics of a MERGE that say 0 lost two rows (delta-io/delta#1155)."""
    commit = describe(0, _actions(operation=operation, added=(_file("a", records=2),)), 0, _no_footer)
    assert (commit.changes_data, commit.rows) == (True, 2)


def _rewrite(added: Sequence[LiveFile], removed: Sequence[LiveFile]) -> int | None:
    commit = _actions(added=added, removed=removed)
    return describe(0, _without_change(commit), 0, _no_footer).rewrite_balance


def _without_change(commit: Actions) -> Actions:
    return replace(
        commit,
        added=tuple(replace(file, data_change=False) for file in commit.added),
        removed=tuple(replace(file, data_change=False) for file in commit.removed),
    )


def test_files_without_a_data_change_have_to_add_as_many_rows_as_they_remove() -> None:
    small, hidden = _file("a", records=10), _file("b", records=12, deleted=2)
    assert _rewrite([small], [hidden]) == 0
    assert _rewrite([small, _file("c", records=1)], [hidden]) == 1
    assert _rewrite([], [hidden]) == -10
    assert _rewrite([small, small], [hidden, hidden]) == 0, "a file that is named twice counts once"
    assert _rewrite([small], [_file("b")]) is None
    assert _actions(added=[small]).rewrite_balance == 0


def test_many_footers_are_sampled_and_the_rest_taken_by_bytes() -> None:
    files = [_file(f"{number:04}", size=1000 + number % 2) for number in range(10 * FOOTERS_PER_COMMIT)]
    read: list[str] = []

    def footer(action: LoggedFile) -> int:
        read.append(action.path)
        return (action.bytes or 0) // 10

    count = sampled_rows(files, footer)
    assert len(read) == FOOTERS_PER_COMMIT
    assert sampled_rows(files[::-1], footer) == count
    assert not count.exact
    assert count.rows == pytest.approx(sum(action.bytes for action in files) / 10, rel=0.01)


def test_bytes_are_those_that_the_feed_reads() -> None:
    added, removed = (
        (_file("a", size=7, records=1, deleted=1),),
        (_file("a", size=7, records=1), _file("b", size=5, records=1)),
    )
    assert describe(0, _actions(added=added, removed=removed), 0, _gone).bytes == 12
    with_changes = describe(0, _actions(added=added, removed=removed, change_files=(_file("c", size=2),)), 0, _gone)
    assert (with_changes.bytes, with_changes.has_cdc) == (2, True)


def test_all_files_that_the_actions_name_are_counted_also_those_of_rewrites() -> None:
    moved = replace(_file("b", records=2), data_change=False)
    found = _actions(added=(_file("a", records=1), moved), removed=(_file("c", records=1),), change_files=(_file("d"),))
    assert describe(0, found, 0, _gone).named_files == 4
