from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from mirror_assets.source.actions import Actions, ChangeFile, CommitInfo, LiveFile, LoggedFile, Tombstone, Vector
from mirror_assets.source.commits import describe
from mirror_assets.source.row_counts import FOOTERS_PER_COMMIT, ReadRows, RowCount, count_rows, sampled_rows


def _file(path: str, *, size: int = 1000, records: int | None = None, deleted: int = 0) -> LiveFile:
    vector = Vector(f"i{deleted}", None, 1, deleted) if deleted else None
    return LiveFile(path, size, records, 0, {}, vector, {})


def _actions(
    operation: str = "",
    metrics: Mapping[str, int] | None = None,
    timestamp_ms: int | None = None,
    added: Sequence[LiveFile] = (),
    removed: Sequence[LiveFile] = (),
    change_files: Sequence[LiveFile] = (),
) -> Actions:
    """A commit with these files."""
    return Actions(
        added=tuple(added),
        removed=tuple(Tombstone(file.path, file.vector, 0, file.bytes, file.rows) for file in removed),
        change_files=tuple(ChangeFile(file.path, file.bytes) for file in change_files),
        info=CommitInfo(operation, metrics or {}, timestamp_ms),
    )


def _no_footer(action: LoggedFile) -> int | None:
    raise AssertionError(f"the footer of {action.path} is not needed")


def _gone(_action: LoggedFile) -> int | None:
    return None


_CHANGES = (_file("c"),)
_MERGE = {"numTargetRowsInserted": 1, "numTargetRowsUpdated": 2, "numTargetRowsDeleted": 4}


@pytest.mark.parametrize(
    ("operation", "metrics", "rows"),
    [
        ("DELETE", {"numDeletedRows": 3}, 3),
        ("DELETE", {"num_deleted_rows": 3}, 3),
        ("UPDATE", {"numUpdatedRows": 3}, 6),
        ("UPDATE", {"num_updated_rows": 3}, 6),
        ("MERGE", _MERGE, 9),
        ("MERGE", {"num_target_rows_inserted": 1, "num_target_rows_updated": 2, "num_target_rows_deleted": 4}, 9),
        ("WRITE", {"numOutputRows": 6, "numCopiedRows": 5, "numDeletedRows": 2}, 3),
    ],
)
def test_change_files_are_counted_by_metrics(operation: str, metrics: dict[str, int], rows: int) -> None:
    commit = _actions(operation=operation, metrics=metrics, added=(_file("a", records=50),), change_files=_CHANGES)
    assert count_rows(commit, _no_footer) == RowCount(rows)


@pytest.mark.parametrize(("operation", "metrics"), [("WRITE", {"num_added_rows": 1}), ("MERGE", {}), ("NEW", _MERGE)])
def test_change_files_without_metrics_are_counted_by_footers(operation: str, metrics: dict[str, int]) -> None:
    commit = _actions(operation=operation, metrics=metrics, change_files=_CHANGES)
    assert count_rows(commit, lambda _: 5) == RowCount(5)
    assert count_rows(commit, _gone) == RowCount(10, exact=False)


def test_data_files_are_counted_by_statistics_less_deleted_rows() -> None:
    commit = _actions(added=(_file("a", records=10, deleted=3),), removed=(_file("b", records=5, deleted=1),))
    assert count_rows(commit, _no_footer) == RowCount(11)


def test_two_vectors_of_one_file_yield_their_difference() -> None:
    """After a RESTORE neither need hold the other (observed: both hide 2 rows, and the feed yields 2)."""
    added, removed = (_file("a", records=10, deleted=7),), (_file("a", records=10, deleted=2),)
    assert count_rows(_actions(operation="DELETE", added=added, removed=removed), _no_footer) == RowCount(5)
    restored = _actions(operation="RESTORE", added=removed, removed=added)
    assert count_rows(restored, _no_footer) == RowCount(5, exact=False)


def test_a_removed_file_without_statistics_is_counted_by_its_footer() -> None:
    commit = _actions(operation="WRITE", added=(_file("a", records=10),), removed=(_file("b", deleted=1),))
    assert count_rows(commit, lambda _: 5) == RowCount(14)
    assert count_rows(commit, _gone) == RowCount(20, exact=False)


@pytest.mark.parametrize(
    ("operation", "metrics", "added", "removed"),
    [
        ("DELETE", {"num_deleted_rows": 8}, (), ("a", "b")),
        ("WRITE", {"numOutputRows": 8}, ("a", "b"), ()),
        ("STREAMING UPDATE", {"numOutputRows": 8}, ("a",), ()),
        ("WRITE", {"num_added_rows": 8}, ("a",), ()),
    ],
)
def test_metrics_stand_in_where_a_commit_only_adds_or_only_removes(
    operation: str, metrics: dict[str, int], added: tuple[str, ...], removed: tuple[str, ...]
) -> None:
    files = tuple(map(_file, added)), tuple(map(_file, removed))
    commit = _actions(operation=operation, metrics=metrics, added=files[0], removed=files[1])
    assert count_rows(commit, _no_footer) == RowCount(8)


def test_metrics_of_a_rewrite_are_not_trusted() -> None:
    """An overwrite's numOutputRows says nothing of the rows that it removes."""
    commit = _actions(operation="WRITE", metrics={"numOutputRows": 8}, added=(_file("a"),), removed=(_file("b"),))
    assert count_rows(commit, lambda _: 5) == RowCount(10)


def test_a_merge_that_only_rewrote_files_changes_nothing() -> None:
    """Delta's feed skips it (observed; CDCReader.shouldSkipFileActionsInCommit)."""
    files = (_file("a", records=5),)
    nothing = dict.fromkeys(_MERGE, 0)
    skipped = describe(0, _actions(operation="MERGE", metrics=nothing, added=files, removed=files), 0, _no_footer)
    assert (skipped.changes_data, skipped.rows, skipped.bytes, skipped.deletion_vectors) == (False, 0, 0, False)
    real = describe(
        0, _actions(operation="MERGE", metrics=nothing | {"numTargetRowsInserted": 5}, added=files), 0, _gone
    )
    assert (real.changes_data, real.rows) == (True, 5)


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
    assert (with_changes.bytes, with_changes.has_cdc, with_changes.deletion_vectors) == (2, True, False)
    assert describe(0, _actions(added=added, removed=removed), 0, _gone).deletion_vectors


def test_what_the_log_alone_tells_of_the_kinds_of_rows() -> None:
    one, other = _file("a", records=3), _file("b", records=4)
    assert describe(0, _actions(added=(one, other)), 0, _gone).known_counts == ReadRows(insert=7)
    assert describe(0, _actions(removed=(one,)), 0, _gone).known_counts == ReadRows(delete=3)
    assert describe(0, _actions(added=(one,), removed=(other,)), 0, _gone).known_counts is None
    assert describe(0, _actions(added=(one,), change_files=(other,)), 0, _gone).known_counts is None
    assert describe(0, _actions(added=(_file("c", size=9),)), 0, _gone).known_counts is None
