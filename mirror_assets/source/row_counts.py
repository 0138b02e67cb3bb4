"""Counts the rows that the change data feed yields for a commit: from its log entry, else from Parquet footers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from mirror_assets.source.actions import Actions, LoggedFile

# At most this many footers of one commit's files are read; the rows of the other files are extrapolated by bytes.
FOOTERS_PER_COMMIT = 32
# An estimate for files of which only the size is known.
BYTES_PER_ROW = 100

FooterRows = Callable[[LoggedFile], "int | None"]
"""Reads the number of rows from a file's footer; None if that can't be read."""

# Rows in change files per operation, for Spark's and delta-rs's names (reference `delta` §1: an update is two rows).
_CHANGE_METRICS: dict[str, tuple[dict[str, int], ...]] = {
    "DELETE": ({"numDeletedRows": 1}, {"num_deleted_rows": 1}),
    "UPDATE": ({"numUpdatedRows": 2}, {"num_updated_rows": 2}),
    "MERGE": (
        {"numTargetRowsInserted": 1, "numTargetRowsUpdated": 2, "numTargetRowsDeleted": 1},
        {"num_target_rows_inserted": 1, "num_target_rows_updated": 2, "num_target_rows_deleted": 1},
    ),
    "WRITE": ({"numOutputRows": 1, "numCopiedRows": -1, "numDeletedRows": 1},),
}
_APPEND_METRICS: tuple[dict[str, int], ...] = ({"numOutputRows": 1}, {"num_added_rows": 1})
_APPENDS = ("WRITE", "STREAMING UPDATE")


@dataclass(frozen=True)
class ReadRows:
    """Numbers of rows of a change data feed, by `_change_type`."""

    insert: int = 0
    update_preimage: int = 0
    update_postimage: int = 0
    delete: int = 0

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> ReadRows:
        """Return the counts by these names."""
        return cls(**{kind.name: int(counted[kind.name]) for kind in fields(cls)})

    @property
    def changes(self) -> int:
        """The number of changes, if no insert and delete are one update."""
        return self.insert + self.update_postimage + self.delete

    @property
    def kinds(self) -> frozenset[str]:
        """The change types of which there are rows."""
        return frozenset(kind.name for kind in fields(self) if getattr(self, kind.name))

    def __add__(self, other: ReadRows) -> ReadRows:
        """Add both, kind by kind."""
        return ReadRows(*(getattr(self, kind.name) + getattr(other, kind.name) for kind in fields(self)))


@dataclass(frozen=True)
class RowCount:
    """A number of rows, either exact or estimated."""

    rows: int
    exact: bool = True

    def __add__(self, other: RowCount) -> RowCount:
        """Add both; the sum is exact if both are."""
        return RowCount(self.rows + other.rows, self.exact and other.exact)


def count_rows(commit: Actions, footer_rows: FooterRows) -> RowCount:
    """Count the rows that the feed yields for the commit: only those of change files, if it has any (`delta` §1)."""
    if yields_nothing(commit):
        return RowCount(0)
    if commit.change_files:
        counted = _by_metrics(_CHANGE_METRICS.get(commit.operation, ()), commit)
        return counted or sampled_rows(commit.change_files, footer_rows)
    files = commit.whole_files
    without_statistics = [file for file in files if file.rows is None]
    rows = _by_metrics_alone(commit) if without_statistics else None
    if rows is None:
        rows = RowCount(sum(file.rows - file.hidden_rows for file in files if file.rows is not None))
        rows += sampled_rows(without_statistics, footer_rows)
    # After a RESTORE, neither of two deletion vectors of one file need contain the other.
    between = sum(abs(added.hidden_rows - removed.hidden_rows) for removed, added in commit.revectored)
    return rows + RowCount(between, exact=not commit.revectored or commit.operation != "RESTORE")


def yields_nothing(commit: Actions) -> bool:
    """Whether a MERGE only rewrote files: Delta's feed skips such a commit, though its actions say dataChange."""
    counts = [commit.metrics.get(name) for name in _CHANGE_METRICS["MERGE"][0]]
    return commit.operation == "MERGE" and not commit.change_files and counts == [0, 0, 0]


def changed_rows(commit: Actions, read: RowCount) -> int:
    """Count the old and new rows of what the commit changed, by its metrics.

    Without metrics, that is all rows `read`, which includes rows that were only copied to another file.
    """
    rewrites = ("DELETE", "UPDATE", "MERGE")
    counted = _by_metrics(_CHANGE_METRICS[commit.operation], commit) if commit.operation in rewrites else None
    return (counted or read).rows


def may_mix(commit: Actions) -> bool:
    """Whether the commit may delete a row and insert another with the same key, according to its log entry."""
    if commit.operation == "MERGE" and commit.change_files:
        counted = next((names for names in _CHANGE_METRICS["MERGE"] if names.keys() <= commit.metrics.keys()), None)
        if counted is None:
            return True
        inserted, _, deleted = (commit.metrics[name] for name in counted)
        return inserted > 0 and deleted > 0
    if commit.change_files:
        return commit.operation not in ("UPDATE", "DELETE")
    paths = {file.path for file in commit.data_removed}
    return commit.operation == "RESTORE" or (bool(paths) and any(file.path not in paths for file in commit.data_added))


def feed_files(commit: Actions) -> tuple[LoggedFile, ...]:
    """Return the files that the feed of the commit is read from."""
    if yields_nothing(commit):
        return ()
    return commit.change_files or (*commit.data_added, *commit.data_removed)


def sampled_rows(files: Sequence[LoggedFile], footer_rows: FooterRows) -> RowCount:
    """Count the live rows of the files by their footers, or by an even sample of footers and the bytes of all files."""
    ordered = sorted(files, key=lambda file: file.path)
    step = max(1, -(-len(ordered) // FOOTERS_PER_COMMIT))
    known = [(file, rows) for file in ordered[::step] if (rows := footer_rows(file)) is not None]
    rows = sum(rows - file.hidden_rows for file, rows in known)
    if len(known) == len(ordered):
        return RowCount(rows)
    sample, whole = sum(file.bytes or 0 for file, _ in known), sum(file.bytes or 0 for file in ordered)
    return RowCount(rows * whole // sample if sample else whole // BYTES_PER_ROW, exact=False)


def _by_metrics(formulas: Sequence[dict[str, int]], commit: Actions) -> RowCount | None:
    """Apply the first formula, a weight per metric, of which the commit has every metric."""
    for formula in formulas:
        if formula.keys() <= commit.metrics.keys():
            return RowCount(sum(weight * commit.metrics[name] for name, weight in formula.items()))
    return None


def _by_metrics_alone(commit: Actions) -> RowCount | None:
    """Count by metrics if statistics are missing, in a commit that only adds or only removes files."""
    if commit.revectored:
        return None
    if commit.operation == "DELETE" and not commit.data_added:
        return _by_metrics(_CHANGE_METRICS["DELETE"], commit)
    if commit.operation in _APPENDS and not commit.data_removed:
        return _by_metrics(_APPEND_METRICS, commit)
    return None
