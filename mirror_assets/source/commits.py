"""A commit as the plan needs it: the kind and size of its changes, and its metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from mirror_assets.source.actions import Actions, LiveFile, LoggedFile, Metadata, Protocol, Tombstone
from mirror_assets.source.row_counts import (
    BYTES_PER_ROW,
    FooterRows,
    count_rows,
    may_mix,
)

# The row indices of this many rows are held in memory.
_MARKED_ROWS = 2_000_000


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
    rows            rows that the change data feed yields for it; estimated unless `rows_exact`
    changed_rows    the same, at most: data files don't show which rows were only copied to another file
    bytes           bytes to read for it
    rewrites        it changes or removes existing rows, or at least moves them to other files
    mixes           its data files may delete a row and insert another with the same key; change files don't show it
    rewrite_balance  rows added less rows removed by files that claim to change no data; None without statistics
    digest          a hash of the commit file, which proves that it is the same when it is read again
    column_id_before  the highest column id that was given before new metadata; None if unknown
    renumbered      it gives new row ids to rows that it only rewrites: `renumbered_rows`, old and new ones counted
    overwritten     a file that it removes, and under whose name it adds another one, or None
    only_feed       it has change files, and adds or removes no file of the table
    added, removed  its data files, also those of rows that it only rewrites; empty unless they were asked for
    metadata, protocol  the new ones, or None
    """

    version: int
    timestamp_ms: int
    operation: str
    changes_data: bool
    rows: int = 0
    rows_exact: bool = True
    changed_rows: int = 0
    bytes: int = 0
    has_cdc: bool = False
    rewrites: bool = False
    mixes: bool = False
    renumbered: bool = False
    renumbered_rows: int = 0
    overwritten: str | None = None
    only_feed: bool = False
    added: tuple[FileVersion, ...] = ()
    removed: tuple[FileVersion, ...] = ()
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    rewrite_balance: int | None = 0
    digest: str = ""
    column_id_before: int | None = None


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
        operation=actions.operation,
        changes_data=changes,
        rows=rows.rows,
        rows_exact=rows.exact,
        changed_rows=rows.rows,
        bytes=sum(file.bytes or 0 for file in read) if changes else 0,
        has_cdc=bool(actions.change_files),
        rewrites=changes and bool(actions.data_removed or actions.change_files),
        mixes=changes and may_mix(actions),
        renumbered=bool(actions.renumbered),
        renumbered_rows=2 * sum((file.rows or 0) - file.hidden_rows for file in actions.renumbered),
        overwritten=actions.overwritten,
        only_feed=bool(actions.change_files) and not (actions.added or actions.removed),
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
