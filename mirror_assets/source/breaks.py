"""Breaks: commits that the rows landed so far can't be carried over (docs/decisions/0002)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mirror_assets.source.actions import Metadata
from mirror_assets.source.commits import Commit
from mirror_assets.source.schema import Schema, SchemaChange, SchemaChangeKind, compare_schemas


class BreakKind(str, Enum):
    """Why a mirror can't go on."""

    TABLE_REPLACED = "table_replaced"
    FEED_DISABLED = "feed_disabled"
    ROW_TRACKING_DISABLED = "row_tracking_disabled"
    RESTORED_SCHEMA = "restored_schema"
    REPLACED = "replaced"
    KEY_CHANGED = "key_changed"
    RENAMED_COLUMN = "renamed_column"
    CHANGED_TYPE = "changed_type"
    DROPPED_COLUMN = "dropped_column"
    ADDED_AGAIN = "added_again"
    ROWS_CHANGED = "rows_changed"
    COLUMNS_CHANGED = "columns_changed"
    FEED_CONTRADICTED = "feed_contradicted"


@dataclass(frozen=True)
class Break:
    """The commit before which mirroring stops, and why."""

    version: int
    kind: BreakKind
    message: str


@dataclass(frozen=True)
class Needs:
    """What the mirror of a table requires of it: its keys, the columns to mirror (None: all), and its properties.

    `dropped` are columns that the mirror has kept and the source, or the choice of columns, no longer has;
    `keep_dropped`: one more may be.
    """

    table_id: str
    keys: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    feed: bool = True
    row_tracking: bool = False
    append_only: bool = False
    dropped: frozenset[str] = frozenset()
    keep_dropped: bool = False


_BY_CHANGE = {
    SchemaChangeKind.RENAMED: BreakKind.RENAMED_COLUMN,
    SchemaChangeKind.RETYPED: BreakKind.CHANGED_TYPE,
    SchemaChangeKind.DROPPED: BreakKind.DROPPED_COLUMN,
    SchemaChangeKind.ADDED: BreakKind.ADDED_AGAIN,
}


def find_break(before: Schema, commit: Commit, metadata: Metadata, after: Schema, needs: Needs) -> Break | None:
    """Return the break that a commit with new metadata makes, or None when mirroring can go on."""
    return _of_table(commit, metadata, needs) or row_break(commit, needs) or _of_schema(before, commit, after, needs)


def row_break(commit: Commit, needs: Needs) -> Break | None:
    """Return the break that the rows of the commit make, whatever it does to the schema, or None.

    A mirror of appends only can't follow changed or removed rows; one by the feed, changes that the table hasn't had.
    """
    if needs.append_only and commit.rewrites:
        return Break(commit.version, BreakKind.ROWS_CHANGED, f"{_done_by(commit)} changes or removes rows")
    if needs.feed and commit.only_feed:
        message = (
            f"{_done_by(commit)} has change files, but adds and removes no file: the table never had these changes"
        )
        return Break(commit.version, BreakKind.FEED_CONTRADICTED, message)
    return None


def _of_table(commit: Commit, metadata: Metadata, needs: Needs) -> Break | None:
    if metadata.table_id != needs.table_id:
        message = f"{_done_by(commit)} made it another table (id {metadata.table_id}, before {needs.table_id})"
        return Break(commit.version, BreakKind.TABLE_REPLACED, message)
    if needs.feed and not metadata.feed_enabled:
        message = f"{_done_by(commit)} switched the change data feed off (delta.enableChangeDataFeed)"
        return Break(commit.version, BreakKind.FEED_DISABLED, message)
    if needs.row_tracking and not metadata.row_tracking:
        message = f"{_done_by(commit)} switched row tracking off (delta.enableRowTracking)"
        return Break(commit.version, BreakKind.ROW_TRACKING_DISABLED, message)
    return None


def _of_schema(before: Schema, commit: Commit, after: Schema, needs: Needs) -> Break | None:
    changes = [change for change in compare_schemas(before, after) if _concerns(change, needs)]
    # RESTORE brings an added column back with the values that it had, and the feed shows none of them.
    restored = commit.operation == "RESTORE"
    reasons = [
        c for c in changes if c.is_breaking or _comes_back(c, needs) or (restored and c.kind is SchemaChangeKind.ADDED)
    ]
    if not reasons:
        return None
    kind = _kind(commit, reasons, needs)
    if kind is BreakKind.DROPPED_COLUMN and needs.keep_dropped and _only_drops(before, commit, after, reasons):
        return None
    message = f"{_done_by(commit)}: {'; '.join(_told(change, needs) for change in reasons)}"
    return Break(commit.version, kind, message)


def dropped_columns(before: Schema, after: Schema, needs: Needs) -> frozenset[str]:
    """Return the mirrored columns that the source no longer has."""
    changes = compare_schemas(before, after)
    return frozenset(change.column for change in changes if _is_drop(change) and _concerns(change, needs))


def is_beside(before: Schema, after: Schema, needs: Needs) -> bool:
    """Whether `after` only has more columns, and none of them is mirrored: nothing that lands differs."""
    added = {change.column for change in compare_schemas(before, after) if not _concerns(change, needs)}
    return (
        tuple(field for field in after.fields if field.name not in added or before.field(field.name)) == before.fields
    )


def _concerns(change: SchemaChange, needs: Needs) -> bool:
    """Whether a mirrored column changes, or another takes the name of one."""
    if needs.columns is None:
        return True
    names = {change.column} | ({change.after} if _is_rename(change) else set())
    return not names.isdisjoint((*needs.columns, *needs.keys))


def _is_rename(change: SchemaChange) -> bool:
    return change.kind is SchemaChangeKind.RENAMED and change.path == change.column


def _is_drop(change: SchemaChange) -> bool:
    return change.kind is SchemaChangeKind.DROPPED and change.path == change.column


def _comes_back(change: SchemaChange, needs: Needs) -> bool:
    """Whether a new column has the name of one that the mirror kept: untouched rows still have the old values there."""
    kept = {name.casefold() for name in needs.dropped}
    return change.kind is SchemaChangeKind.ADDED and change.path == change.column and change.column.casefold() in kept


def _told(change: SchemaChange, needs: Needs) -> str:
    return f"{change} again, and the mirror has its old values" if _comes_back(change, needs) else str(change)


def _only_drops(before: Schema, commit: Commit, after: Schema, reasons: Sequence[SchemaChange]) -> bool:
    """Whether the commit drops whole columns and touches no row; only field ids tell that from a rename."""
    mapped = all(field.field_id is not None for field in (*before.fields, *after.fields))
    return mapped and not commit.changes_data and all(_is_drop(change) for change in reasons)


def _kind(commit: Commit, reasons: Sequence[SchemaChange], needs: Needs) -> BreakKind:
    if commit.operation == "RESTORE":
        return BreakKind.RESTORED_SCHEMA
    # A plain write removes columns only when it overwrites the table's schema.
    lost = any(change.kind in (SchemaChangeKind.DROPPED, SchemaChangeKind.RENAMED) for change in reasons)
    if "REPLACE TABLE" in commit.operation or (commit.operation == "WRITE" and lost):
        return BreakKind.REPLACED
    if any(change.column in needs.keys for change in reasons):
        return BreakKind.KEY_CHANGED
    kinds = {_BY_CHANGE[change.kind] for change in reasons}
    return min(kinds, key=list(_BY_CHANGE.values()).index)


def _done_by(commit: Commit) -> str:
    return f"version {commit.version} ({commit.operation})" if commit.operation else f"version {commit.version}"
