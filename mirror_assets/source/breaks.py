"""Breaks: commits after which the landed rows can't be continued (docs/decisions/0002)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mirror_assets.source.actions import Metadata
from mirror_assets.source.commits import Commit
from mirror_assets.source.schema import Field, Schema, SchemaChange, SchemaChangeKind, compare_schemas


class BreakKind(str, Enum):
    """Why a mirror can't continue."""

    TABLE_REPLACED = "table_replaced"
    ROW_TRACKING_DISABLED = "row_tracking_disabled"
    RESTORED_SCHEMA = "restored_schema"
    REPLACED = "replaced"
    KEY_CHANGED = "key_changed"
    RENAMED_COLUMN = "renamed_column"
    CHANGED_TYPE = "changed_type"
    DROPPED_COLUMN = "dropped_column"
    ADDED_AGAIN = "added_again"
    ROWS_CHANGED = "rows_changed"
    FILE_OVERWRITTEN = "file_overwritten"
    COLUMNS_CHANGED = "columns_changed"


@dataclass(frozen=True)
class Break:
    """The commit before which mirroring stops, and why."""

    version: int
    kind: BreakKind
    message: str


@dataclass(frozen=True)
class Needs:
    """The requirements of a mirror: the landed table's id, its keys, the mirrored columns (None: all), its properties.

    Changes of other columns are no break. `row_tracking`: the source has to have it on; `append_only`: rows are only
    ever added. `dropped` are columns that the mirror still has, and the source, or the
    choice of columns, no longer has; `keep_dropped`: more of them are allowed, but none that the condition or an
    expression uses (`used`).
    """

    table_id: str
    keys: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    row_tracking: bool = False
    append_only: bool = False
    dropped: frozenset[str] = frozenset()
    keep_dropped: bool = False
    used: frozenset[str] = frozenset()


_BY_CHANGE = {
    SchemaChangeKind.RENAMED: BreakKind.RENAMED_COLUMN,
    SchemaChangeKind.RETYPED: BreakKind.CHANGED_TYPE,
    SchemaChangeKind.DROPPED: BreakKind.DROPPED_COLUMN,
    SchemaChangeKind.ADDED: BreakKind.ADDED_AGAIN,
    SchemaChangeKind.MOVED: BreakKind.CHANGED_TYPE,
}


def find_break(before: Schema, commit: Commit, metadata: Metadata, after: Schema, needs: Needs) -> Break | None:
    """Return the break of a commit with new metadata, or None when mirroring can continue."""
    if metadata.table_id != needs.table_id:
        message = f"{_done_by(commit)} made it another table (id {metadata.table_id}, before {needs.table_id})"
        return Break(commit.version, BreakKind.TABLE_REPLACED, message)
    if needs.row_tracking and not metadata.row_tracking:
        message = f"{_done_by(commit)} switched row tracking off (delta.enableRowTracking)"
        return Break(commit.version, BreakKind.ROW_TRACKING_DISABLED, message)
    return row_break(commit, needs) or _schema_break(before, commit, after, needs)


def row_break(commit: Commit, needs: Needs) -> Break | None:
    """Return the break of a commit because of its files, or None.

    An append-only mirror can't follow one that changes or removes rows, and no mirror one whose old rows are lost.
    """
    if needs.append_only and commit.rewrites:
        return Break(commit.version, BreakKind.ROWS_CHANGED, f"{_done_by(commit)} changes or removes rows")
    if commit.overwritten is not None:
        why = (
            f"{_done_by(commit)} adds another file under the same name, {commit.overwritten}, so its old rows are lost"
        )
        return Break(commit.version, BreakKind.FILE_OVERWRITTEN, why)
    return None


def _schema_break(before: Schema, commit: Commit, after: Schema, needs: Needs) -> Break | None:
    changes = [change for change in compare_schemas(before, after) if _concerns(change, needs)]
    reasons = [
        c
        for c in changes
        if c.is_breaking
        or _comes_back(c, needs)
        or _has_old_values(c, before, commit, after)
        # An expression may use a nested field that older versions lack.
        or (c.column in needs.used and c.path != c.column and c.kind is not SchemaChangeKind.NULLABILITY)
    ]
    if not reasons:
        return None
    if needs.keep_dropped and not commit.changes_data and all(_is_whole_drop(change) for change in reasons):
        # Only field ids distinguish a drop of whole columns from a rename.
        mapped = all(field.field_id is not None for field in (*before.fields, *after.fields))
        if mapped and needs.used.union(needs.keys).isdisjoint(change.column for change in reasons):
            return None
    texts = []
    for change in reasons:
        again = " again, and the mirror has its old values" if _comes_back(change, needs) else ""
        old = ", with the values that older files have" if _has_old_values(change, before, commit, after) else ""
        texts.append(f"{change}{again or old}")
    return Break(commit.version, _kind(commit, reasons, needs), f"{_done_by(commit)}: {'; '.join(texts)}")


def _has_old_values(change: SchemaChange, before: Schema, commit: Commit, after: Schema) -> bool:
    """Whether files that the commit leaves untouched may have values of an added column, which no feed has.

    RESTORE brings back a column that column mapping had dropped. A new column has an id that was never given before.
    Without column mapping, Delta can't drop a column without replacing the files.
    """
    if change.kind is not SchemaChangeKind.ADDED:
        return False
    field = _field_at(after.fields, change.path)
    if field is None or field.field_id is None:
        return any(column.field_id is not None for column in before.fields)
    return commit.column_id_before is None or field.field_id <= commit.column_id_before


def _field_at(fields: Sequence[Field], path: str) -> Field | None:
    """Return the column or the member of a nested column at a path of `compare_schemas`; names may have dots."""
    for field in fields:
        if field.name == path:
            return field
        if path.startswith(f"{field.name}.") and (found := _field_at(field.children, path[len(field.name) + 1 :])):
            return found
    return None


def dropped_columns(before: Schema, after: Schema, needs: Needs) -> frozenset[str]:
    """Return the mirrored columns that the source no longer has."""
    changes = compare_schemas(before, after)
    return frozenset(change.column for change in changes if _is_whole_drop(change) and _concerns(change, needs))


def is_beside(before: Schema, after: Schema, needs: Needs) -> bool:
    """Whether `after` only has more columns, and none of them is mirrored, so that the landed columns are the same."""
    added = {change.column for change in compare_schemas(before, after) if not _concerns(change, needs)}
    return (
        tuple(field for field in after.fields if field.name not in added or before.field(field.name)) == before.fields
    )


def _concerns(change: SchemaChange, needs: Needs) -> bool:
    """Whether a mirrored column changes, or another takes the name of one."""
    if needs.columns is None:
        return True
    is_rename = change.kind is SchemaChangeKind.RENAMED and change.path == change.column
    names = {change.column, change.after} if is_rename else {change.column}
    return not names.isdisjoint((*needs.columns, *needs.keys))


def _is_whole_drop(change: SchemaChange) -> bool:
    return change.kind is SchemaChangeKind.DROPPED and change.path == change.column


def _comes_back(change: SchemaChange, needs: Needs) -> bool:
    """Whether a new column has the name of a dropped one: untouched rows of the mirror still have its old values."""
    kept = {name.casefold() for name in needs.dropped}
    return change.kind is SchemaChangeKind.ADDED and change.path == change.column and change.column.casefold() in kept


def _kind(commit: Commit, reasons: Sequence[SchemaChange], needs: Needs) -> BreakKind:
    """Return the kind to show. The operation's name decides nothing else: a writer may leave it out."""
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
