"""One commit as the plan needs it: what it changes, how much there is to read, what it says of the schema."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mirror_assets.source.actions import CommitFile, FileAction, Metadata, Protocol
from mirror_assets.source.row_counts import (
    FooterRows,
    ReadRows,
    RowCount,
    changed_rows,
    count_rows,
    may_mix,
    paired,
    unpaired,
    yields_nothing,
)

# Row indices of that many rows are held in memory, beside the slice's plan.
_MARKED_ROWS = 2_000_000


@dataclass(frozen=True)
class Commit:
    """One commit of a source.

    `rows` is what the change feed yields for it, `rows_exact` whether that is known or estimated, `told` which rows
    these are if the log knows. `bytes` is what must be read for it; `changed_rows` are the old and new rows of what it
    changed. `deletion_vectors`: rows come from comparing two vectors of one file. `rewrites`: rows that were there
    before are changed, removed or at least moved to other files. `mixes`: it may remove a row and add another of the
    same key. `renumbered`: where rows have ids, some were only rewritten, but got new ones; `renumbered_rows` are
    these, once under the old ids and once under the new. `only_feed`: it has change files, and changes no file of the
    table. `metadata` and `protocol` are what the commit sets, or None.
    """

    version: int
    timestamp_ms: int
    operation: str
    changes_data: bool
    rows: int = 0
    rows_exact: bool = True
    told: ReadRows | None = None
    changed_rows: int = 0
    bytes: int = 0
    has_cdc: bool = False
    deletion_vectors: bool = False
    rewrites: bool = False
    mixes: bool = False
    renumbered: bool = False
    renumbered_rows: int = 0
    only_feed: bool = False
    metadata: Metadata | None = None
    protocol: Protocol | None = None


def describe(file: CommitFile, modified_ms: int, footer_rows: FooterRows) -> Commit:
    """The commit that the file holds; `modified_ms` stands in where it has no time of its own, as in Spark."""
    changes = bool(file.change_files or file.added or file.removed) and not yields_nothing(file)
    rows = count_rows(file, footer_rows)
    return Commit(
        version=file.version,
        timestamp_ms=modified_ms if file.timestamp_ms is None else file.timestamp_ms,
        operation=file.operation,
        changes_data=changes,
        rows=rows.rows,
        rows_exact=rows.exact,
        told=_told(file, rows),
        changed_rows=rows.rows if file.change_files else changed_rows(file, rows),
        bytes=_bytes(file) if changes else 0,
        has_cdc=bool(file.change_files),
        deletion_vectors=changes and not file.change_files and bool(paired(file)),
        rewrites=changes and bool(file.removed or file.change_files),
        mixes=changes and may_mix(file),
        renumbered=bool(file.renumbered),
        renumbered_rows=2 * _known_rows(file.renumbered),
        only_feed=bool(file.change_files) and not file.moves_files,
        metadata=file.metadata,
        protocol=file.protocol,
    )


def vector_versions(commits: Iterable[Commit]) -> tuple[int, ...]:
    """The commits whose deletion vectors are best compared together: each file is then read once for all of them.

    Those with the most rows are left out where there are too many in all: for them a scan of their own is worth it.
    """
    found: list[int] = []
    rows = 0
    for commit in sorted((commit for commit in commits if commit.deletion_vectors), key=lambda commit: commit.rows):
        rows += commit.rows
        if rows > _MARKED_ROWS:
            break
        found.append(commit.version)
    return tuple(sorted(found))


def _told(file: CommitFile, rows: RowCount) -> ReadRows | None:
    """What the feed yields of a commit that only adds files, or only removes some; others tell too little."""
    if file.change_files or not rows.exact or (file.added and file.removed):
        return None
    return ReadRows(delete=rows.rows) if file.removed else ReadRows(insert=rows.rows)


def _known_rows(files: tuple[FileAction, ...]) -> int:
    return sum((action.records or 0) - action.deleted for action in files)


def _bytes(file: CommitFile) -> int:
    if file.change_files:
        return sum(action.bytes for action in file.change_files)
    return sum(action.bytes for action in (*unpaired(file), *(added for _, added in paired(file))))
