"""Rows of a change feed, counted by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from mirror_assets.source.actions import CommitFile, FileAction


@dataclass(frozen=True)
class ReadRows:
    """Rows of a feed by `_change_type`."""

    insert: int = 0
    update_preimage: int = 0
    update_postimage: int = 0
    delete: int = 0

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> ReadRows:
        """What was counted."""
        return cls(**{kind.name: int(counted[kind.name]) for kind in fields(cls)})

    @property
    def changes(self) -> int:
        """The changes that they come to where none has to be paired."""
        return self.insert + self.update_postimage + self.delete

    def __add__(self, other: ReadRows) -> ReadRows:
        """Both together."""
        return ReadRows(*(getattr(self, kind.name) + getattr(other, kind.name) for kind in fields(self)))


# Files of one commit whose footers are read at most; more are extrapolated by bytes.
FOOTERS_PER_COMMIT = 32
# A guess for files of which nothing but their size is known.
BYTES_PER_ROW = 100

FooterRows = Callable[[FileAction], "int | None"]

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
class RowCount:
    """A number of rows, and whether it is known or estimated."""

    rows: int
    exact: bool = True

    def __add__(self, other: RowCount) -> RowCount:
        """Both together."""
        return RowCount(self.rows + other.rows, self.exact and other.exact)


class Described(Protocol):
    """What tells whether a commit has changes: its commitInfo, and its change files if there are any."""

    @property
    def operation(self) -> str:
        """Delta's name of it."""

    @property
    def metrics(self) -> Mapping[str, int]:
        """Its whole-numbered metrics."""

    @property
    def change_files(self) -> Sequence[object]:
        """Files of its change data feed."""


def yields_nothing(commit: Described) -> bool:
    """Whether a MERGE only rewrote files: Delta's feed skips such a commit, though its actions say dataChange."""
    counts = [commit.metrics.get(name) for name in _CHANGE_METRICS["MERGE"][0]]
    return commit.operation == "MERGE" and not commit.change_files and counts == [0, 0, 0]


def may_mix(commit: CommitFile) -> bool:
    """Whether the commit may remove a row and add another of the same key, as far as its log entry tells."""
    if commit.operation == "MERGE" and commit.change_files:
        told = next((names for names in _CHANGE_METRICS["MERGE"] if names.keys() <= commit.metrics.keys()), None)
        if told is None:
            return True
        inserted, _, deleted = (commit.metrics[name] for name in told)
        return inserted > 0 and deleted > 0
    if commit.change_files:
        return commit.operation not in ("UPDATE", "DELETE")
    paths = {action.path for action in commit.removed}
    return commit.operation == "RESTORE" or (bool(paths) and any(action.path not in paths for action in commit.added))


def count_rows(commit: CommitFile, footer_rows: FooterRows) -> RowCount:
    """Rows that the feed yields for the commit (reference `delta` §1: change files alone count where there are any)."""
    if yields_nothing(commit):
        return RowCount(0)
    if commit.change_files:
        told = _told(_CHANGE_METRICS.get(commit.operation, ()), commit)
        return told or sampled_rows(commit.change_files, footer_rows)
    return _from_data_files(commit, footer_rows)


def changed_rows(commit: CommitFile, read: RowCount) -> int:
    """Old and new rows of what the commit changed, where it tells; it may rewrite many more, which are `read`."""
    rewrites = ("DELETE", "UPDATE", "MERGE")
    told = _told(_CHANGE_METRICS[commit.operation], commit) if commit.operation in rewrites else None
    return (told or read).rows


def paired(commit: CommitFile) -> tuple[tuple[FileAction, FileAction], ...]:
    """Files that the commit removes and adds again with another deletion vector: (removed, added)."""
    removed = {action.path: action for action in commit.removed}
    return tuple((removed[action.path], action) for action in commit.added if action.path in removed)


def unpaired(commit: CommitFile) -> tuple[FileAction, ...]:
    """Files of which the feed yields every live row."""
    both = {added.path for _, added in paired(commit)}
    return tuple(action for action in (*commit.added, *commit.removed) if action.path not in both)


def feed_files(commit: CommitFile) -> tuple[FileAction, ...]:
    """The files that the feed of a commit is read from."""
    return () if yields_nothing(commit) else commit.change_files or (*commit.added, *commit.removed)


def sampled_rows(files: Sequence[FileAction], footer_rows: FooterRows) -> RowCount:
    """Live rows of the files by their footers: of all, or of some spread evenly, and the rest by bytes."""
    ordered = sorted(files, key=lambda action: action.path)
    step = max(1, -(-len(ordered) // FOOTERS_PER_COMMIT))
    known = [(action, rows) for action in ordered[::step] if (rows := footer_rows(action)) is not None]
    rows = sum(rows - action.deleted for action, rows in known)
    if len(known) == len(ordered):
        return RowCount(rows)
    sample, whole = sum(action.bytes for action, _ in known), sum(action.bytes for action in ordered)
    return RowCount(rows * whole // sample if sample else whole // BYTES_PER_ROW, exact=False)


def _told(formulas: Sequence[dict[str, int]], commit: CommitFile) -> RowCount | None:
    for formula in formulas:
        if formula.keys() <= commit.metrics.keys():
            return RowCount(sum(weight * commit.metrics[name] for name, weight in formula.items()))
    return None


def _from_data_files(commit: CommitFile, footer_rows: FooterRows) -> RowCount:
    files = unpaired(commit)
    silent = [action for action in files if action.records is None]
    rest = RowCount(sum(action.records - action.deleted for action in files if action.records is not None))
    told = _told_of_silent(commit, silent)
    return (told or rest + sampled_rows(silent, footer_rows)) + _of_vectors(commit)


def _told_of_silent(commit: CommitFile, silent: Sequence[FileAction]) -> RowCount | None:
    """What the metrics say of a commit that only adds or only removes files, where statistics are missing."""
    if not silent or paired(commit):
        return None
    if commit.operation == "DELETE" and not commit.added:
        return _told(_CHANGE_METRICS["DELETE"], commit)
    if commit.operation in _APPENDS and not commit.removed:
        return _told(_APPEND_METRICS, commit)
    return None


def _of_vectors(commit: CommitFile) -> RowCount:
    """Rows between two deletion vectors of one file; after a RESTORE one need not hold the other."""
    pairs = paired(commit)
    rows = sum(abs(added.deleted - removed.deleted) for removed, added in pairs)
    return RowCount(rows, exact=not pairs or commit.operation != "RESTORE")
