"""Commits behind which a mirror can't go on from what landed (docs/decisions/0002)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mirror_assets.delta.actions import Metadata
from mirror_assets.delta.commits import Commit
from mirror_assets.delta.schema import Schema
from mirror_assets.delta.schema_changes import SchemaChange, SchemaChangeKind, compare_schemas


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
    ROWS_CHANGED = "rows_changed"


@dataclass(frozen=True)
class Break:
    """The commit before which mirroring stops, and why."""

    version: int
    kind: BreakKind
    message: str


@dataclass(frozen=True)
class Needs:
    """What the mirror of a table rests on: its keys, the columns it takes (None: all), and what the table must stay."""

    table_id: str
    keys: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    feed: bool = True
    row_tracking: bool = False
    append_only: bool = False


_BY_CHANGE = {
    SchemaChangeKind.RENAMED: BreakKind.RENAMED_COLUMN,
    SchemaChangeKind.RETYPED: BreakKind.CHANGED_TYPE,
    SchemaChangeKind.DROPPED: BreakKind.DROPPED_COLUMN,
}


def find_break(before: Schema, commit: Commit, metadata: Metadata, after: Schema, needs: Needs) -> Break | None:
    """The break that a commit with new metadata makes, or None when the mirror can go on."""
    return _of_table(commit, metadata, needs) or find_rewrite(commit, needs) or _of_schema(before, commit, after, needs)


def find_rewrite(commit: Commit, needs: Needs) -> Break | None:
    """The break that changed or removed rows are to a mirror of appends only, or None."""
    if not (needs.append_only and commit.rewrites):
        return None
    message = f"{_done_by(commit)} changes or removes rows"
    return Break(commit.version, BreakKind.ROWS_CHANGED, message)


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
    reasons = [c for c in changes if c.is_breaking or (restored and c.kind is SchemaChangeKind.ADDED)]
    if not reasons:
        return None
    message = f"{_done_by(commit)}: {'; '.join(map(str, reasons))}"
    return Break(commit.version, _kind(commit, reasons, needs), message)


def _concerns(change: SchemaChange, needs: Needs) -> bool:
    return needs.columns is None or change.column in needs.columns or change.column in needs.keys


def _kind(commit: Commit, reasons: Sequence[SchemaChange], needs: Needs) -> BreakKind:
    if commit.operation == "RESTORE":
        return BreakKind.RESTORED_SCHEMA
    # A plain write removes columns only when it overwrites the table's schema.
    lost = any(change.kind is not SchemaChangeKind.RETYPED for change in reasons)
    if "REPLACE TABLE" in commit.operation or (commit.operation == "WRITE" and lost):
        return BreakKind.REPLACED
    if any(change.column in needs.keys for change in reasons):
        return BreakKind.KEY_CHANGED
    kinds = {_BY_CHANGE[change.kind] for change in reasons}
    return min(kinds, key=list(_BY_CHANGE.values()).index)


def _done_by(commit: Commit) -> str:
    return f"version {commit.version} ({commit.operation})" if commit.operation else f"version {commit.version}"
