"""Counts the rows that a plan expects of a commit: from its actions, else from Parquet footers or by bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from mirror_assets.source.actions import Actions, LiveFile, LoggedFile, Tombstone, live_rows

# At most this many footers of one commit's files are read; the rows of the other files are extrapolated by bytes.
FOOTERS_PER_COMMIT = 32
# An estimate for files of which only the size is known.
BYTES_PER_ROW = 100

FooterRows = Callable[[LoggedFile], "int | None"]
"""Reads the number of rows from a file's footer; None if that can't be read."""


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
    if commit.change_files:
        return _rows_of_change_files(commit, footer_rows)
    files = commit.whole_files
    rows = RowCount(sum(file.rows - file.hidden_rows for file in files if file.rows is not None))
    rows += sampled_rows([file for file in files if file.rows is None], footer_rows)
    # If a vector hides fewer rows than the previous one (RESTORE), neither need contain the other.
    hidden = [added.hidden_rows - removed.hidden_rows for removed, added in commit.revectored]
    return rows + RowCount(sum(map(abs, hidden)), exact=all(more > 0 for more in hidden))


def may_mix(commit: Actions) -> bool:
    """Whether data files show that the commit may delete a row and insert another with the same key.

    False for a commit with change files, whose kinds of rows only a count shows.
    """
    paths = {file.path for file in commit.data_removed}
    is_replaced = bool(paths) and any(file.path not in paths for file in commit.data_added)
    return is_replaced and not commit.change_files


def feed_files(commit: Actions) -> tuple[LoggedFile, ...]:
    """Return the files that the feed of the commit is read from."""
    return commit.change_files or (*commit.data_added, *commit.data_removed)


def _rows_of_change_files(commit: Actions, footer_rows: FooterRows) -> RowCount:
    """Estimate the rows of change files by their bytes, with as many bytes per row as the commit's data files have.

    Only the sizes of parts depend on it, so footers are read only if no data file has statistics. A change file has at
    most the old and new rows of the data files, and at least those by which their numbers differ.
    """
    files: tuple[LiveFile | Tombstone, ...] = (*commit.data_added, *commit.data_removed)
    known = [(file.bytes, file.rows) for file in files if file.bytes and file.rows]
    if not known:
        return replace(sampled_rows(commit.change_files, footer_rows), exact=False)
    stored_bytes, stored_rows = (sum(column) for column in zip(*known, strict=True))
    rows = max(1, sum(file.bytes for file in commit.change_files) * stored_rows // stored_bytes)
    added, removed = live_rows(commit.data_added), live_rows(commit.data_removed)
    if added is not None and removed is not None:
        rows = max(abs(added - removed), min(rows, added + removed))
    return RowCount(rows, exact=False)


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
