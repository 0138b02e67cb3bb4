"""A source as the plan needs it: its state at a version, and of each commit the kind and size of its changes.

The rows of a commit are counted from its actions, else from Parquet footers or by bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import blake2b

from mirror_assets.source.actions import (
    BYTES_PER_ROW,
    Actions,
    LiveFile,
    LoggedFile,
    Metadata,
    Protocol,
    Tombstone,
    live_rows,
)
from mirror_assets.source.schema import Schema, parse_schema

# At most this many footers of one commit's files are read; the rows of the other files are extrapolated by bytes.
FOOTERS_PER_COMMIT = 32

FooterRows = Callable[[LoggedFile], "int | None"]
"""Reads the number of rows from a file's footer; None if that can't be read."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A data file as a version of the table has it, with its deletion vector.

    `rows` are its live rows; they and the bytes are estimated where the log lacks them.
    """

    path: str
    vector: str | None
    rows: int
    bytes: int

    @classmethod
    def of(cls, file: LiveFile | Tombstone) -> FileVersion:
        """Return the file as an action has it."""
        rows = (file.bytes or 0) // BYTES_PER_ROW if file.rows is None else file.rows - file.hidden_rows
        return cls(file.path, file.vector.id if file.vector else None, rows, file.bytes or 0)


@dataclass(frozen=True)
class CommitRange:
    """The commits `first` to `last` of the table with this id; `digests` are those of their files, by version.

    Without id or digests, any table's commits are read.
    """

    first: int
    last: int
    table_id: str | None = None
    digests: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Commit:
    """One commit of a source.

    operation       the writer's name of it, for messages only
    rows            rows that the change data feed yields for it; estimated unless `rows_exact`. Data files don't show
                    which rows were only copied to another file
    bytes           bytes to read for it
    rewrites        it changes or removes existing rows, or at least moves them to other files
    mixes           its data files may delete a row and insert another with the same key; change files don't show it
    rewrite_balance  rows added less rows removed by files that claim to change no data; None without statistics
    digest          a hash of the commit file, which proves that it is the same when it is read again
    column_id_before  the highest column id that was given before new metadata; None if unknown
    renumbered      it gives new row ids to rows that it only rewrites: `renumbered_rows`, old and new ones counted
    overwritten     a file that it removes, and under whose name it adds another one, or None
    only_feed       it has change files, and adds or removes no file of the table
    named_files     the number of files that its actions add, remove, or have the changes of
    added, removed  its data files, also those of rows that it only rewrites; empty unless they were asked for
    by_files        why it is read by comparing versions, empty if the settings say so; None: by its feed
    metadata, protocol  the new ones, or None
    """

    version: int
    timestamp_ms: int
    operation: str
    changes_data: bool
    rows: int = 0
    rows_exact: bool = True
    bytes: int = 0
    has_cdc: bool = False
    rewrites: bool = False
    mixes: bool = False
    renumbered: bool = False
    renumbered_rows: int = 0
    overwritten: str | None = None
    only_feed: bool = False
    named_files: int = 0
    added: tuple[FileVersion, ...] = ()
    removed: tuple[FileVersion, ...] = ()
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    rewrite_balance: int | None = 0
    digest: str = ""
    column_id_before: int | None = None
    by_files: str | None = None


def describe(
    version: int,
    actions: Actions,
    timestamp_ms: int,
    footer_rows: FooterRows,
    *,
    with_files: bool = False,
    digest: str = "",
) -> Commit:
    """Describe the commit; its files only if asked, because a large backlog has very many."""
    files = (*actions.data_added, *actions.data_removed)
    changes = bool(actions.change_files or files)
    rows = count_rows(actions, footer_rows)
    read: Iterable[LoggedFile] = actions.change_files or (
        *actions.whole_files,
        *(added for _, added in actions.revectored),
    )
    return Commit(
        version=version,
        timestamp_ms=timestamp_ms,
        operation=actions.info.operation,
        changes_data=changes,
        rows=rows.rows,
        rows_exact=rows.exact,
        bytes=sum(file.bytes or 0 for file in read) if changes else 0,
        has_cdc=bool(actions.change_files),
        rewrites=changes and bool(actions.data_removed or actions.change_files),
        mixes=changes and may_mix(actions),
        renumbered=bool(actions.renumbered),
        renumbered_rows=2 * sum((file.rows or 0) - file.hidden_rows for file in actions.renumbered),
        overwritten=actions.overwritten,
        only_feed=bool(actions.change_files) and not (actions.added or actions.removed),
        named_files=len(actions.added) + len(actions.removed) + len(actions.change_files),
        added=tuple(map(FileVersion.of, actions.added)) if with_files else (),
        removed=tuple(map(FileVersion.of, actions.removed)) if with_files else (),
        metadata=actions.metadata,
        protocol=actions.protocol,
        rewrite_balance=actions.rewrite_balance,
        digest=digest,
    )


def commit_digest(data: bytes) -> str:
    """Return a short hash of a commit file."""
    return blake2b(data, digest_size=16).hexdigest()


def with_column_ids(commits: Sequence[Commit], before: Callable[[], Metadata | None]) -> tuple[Commit, ...]:
    """Fill in `column_id_before` of those with new metadata under column mapping.

    `before` returns the metadata before the first commit, or None if unknown; it is called only if it is required.
    """
    filled: list[Commit] = []
    metadata: Metadata | None = None
    for commit in commits:
        if commit.metadata is not None and commit.metadata.max_column_id and commit.version > 0:
            metadata = metadata or before()
            filled.append(replace(commit, column_id_before=metadata.max_column_id if metadata else None))
        else:
            filled.append(commit)
        metadata = commit.metadata or metadata
    return tuple(filled)


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


@dataclass(frozen=True)
class SourceState:
    """A source at one version.

    `rows` is None if statistics are missing, or hidden rows are not counted. `stored_rows` includes the rows that
    deletion vectors hide, and is None if statistics are missing.
    """

    uri: str
    version: int
    timestamp_ms: int
    metadata: Metadata
    protocol: Protocol
    files: int
    bytes: int
    rows: int | None
    stored_rows: int | None
    digest: str = ""

    @property
    def table_id(self) -> str:
        """The table's id; another id means another table."""
        return self.metadata.table_id

    @property
    def schema_string(self) -> str:
        """The schema as Delta writes it, keys in canonical order."""
        return self.metadata.schema_string

    @cached_property
    def schema(self) -> Schema:
        """The schema. Raises SCHEMA_UNREADABLE."""
        return parse_schema(self.schema_string)

    @property
    def feed_enabled(self) -> bool:
        """Whether the table records its change data feed."""
        return self.metadata.feed_enabled

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns, in order."""
        return self.metadata.partition_columns

    @property
    def likely_rows(self) -> int:
        """The best estimate of the number of rows, for sizing files."""
        if self.rows is not None:
            return self.rows
        return self.bytes // BYTES_PER_ROW if self.stored_rows is None else self.stored_rows


def source_columns(state: SourceState) -> tuple[tuple[str, str], ...]:
    """Return the name and the type of every column, as Spark spells it."""
    return tuple((field.name, field.type) for field in state.schema.fields)
