"""What differs between two schemas of one source, and which of it the mirror can't follow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from mirror_assets.delta.schema import Field, Schema

_INTEGERS = ("tinyint", "smallint", "int", "bigint")


class SchemaChangeKind(str, Enum):
    """One way in which a schema differs from the one before."""

    ADDED = "added"
    NULLABILITY = "nullability"
    MOVED = "moved"
    RESIZED = "resized"
    RETYPED = "retyped"
    RENAMED = "renamed"
    DROPPED = "dropped"


_BREAKING = frozenset({SchemaChangeKind.RETYPED, SchemaChangeKind.RENAMED, SchemaChangeKind.DROPPED})


@dataclass(frozen=True)
class SchemaChange:
    """One difference.

    `column` is the top-level column as it was called before (an added one: as it is called now), `path` the member
    itself in dots; `before` and `after` are what changed: types, names, or nullability.
    """

    kind: SchemaChangeKind
    column: str
    path: str
    before: str = ""
    after: str = ""

    @property
    def is_breaking(self) -> bool:
        """Whether rows landed before would no longer be what the source says, or could not be read any more."""
        return self.kind in _BREAKING

    def __str__(self) -> str:
        """The difference in words."""
        if self.kind in (SchemaChangeKind.ADDED, SchemaChangeKind.DROPPED, SchemaChangeKind.MOVED):
            return f"column `{self.path}` was {self.kind.value}"
        return f"column `{self.path}` was {self.kind.value} from {self.before} to {self.after}"


def compare_schemas(before: Schema, after: Schema) -> tuple[SchemaChange, ...]:
    """Every difference, by column; empty when both are equal.

    Columns are matched by id and physical name where both schemas have them (column mapping), so that a rename, or a
    column dropped and added again under its old name, is seen as what it is; else by name.
    A nested column lands as JSON text: what changes in it is breaking when the text of unchanged rows would change.
    """
    return tuple(_differences(before.fields, after.fields, None, ""))


def _identity(field: Field, *, mapped: bool) -> str:
    return f"{field.field_id}/{field.physical_name}" if mapped else field.name.casefold()


def _differences(
    before: tuple[Field, ...], after: tuple[Field, ...], top: str | None, prefix: str
) -> Iterator[SchemaChange]:
    mapped = all(field.field_id is not None for field in (*before, *after))
    old = {_identity(field, mapped=mapped): field for field in before}
    new = {_identity(field, mapped=mapped): field for field in after}
    for key, field in old.items():
        column, path = top or field.name, prefix + field.name
        if key in new:
            yield from _of_one(field, new[key], column, path, nested=top is not None)
        else:
            yield SchemaChange(SchemaChangeKind.DROPPED, column, path)
    for key, field in new.items():
        if key not in old:
            yield SchemaChange(SchemaChangeKind.ADDED, top or field.name, prefix + field.name)
    kept_before, kept_after = [key for key in old if key in new], [key for key in new if key in old]
    for was, now in zip(kept_before, kept_after, strict=True):
        if was != now:
            yield SchemaChange(SchemaChangeKind.MOVED, top or old[now].name, prefix + old[now].name)


def _of_one(before: Field, after: Field, column: str, path: str, *, nested: bool) -> Iterator[SchemaChange]:
    if before.name != after.name:
        yield SchemaChange(SchemaChangeKind.RENAMED, column, path, before.name, after.name)
    if before.nullable != after.nullable:
        yield SchemaChange(SchemaChangeKind.NULLABILITY, column, path, _nullability(before), _nullability(after))
    if before.children and after.children and before.type.split("<")[0] == after.type.split("<")[0]:
        yield from _differences(before.children, after.children, column, f"{path}.")
    elif before.type != after.type:
        kind = SchemaChangeKind.RESIZED if _same_landing(before, after, nested=nested) else SchemaChangeKind.RETYPED
        yield SchemaChange(kind, column, path, before.type, after.type)


def _nullability(field: Field) -> str:
    return "NULL" if field.nullable else "NOT NULL"


def _same_landing(before: Field, after: Field, *, nested: bool) -> bool:
    """Whether the landed value of an unchanged row stays the same under the new type."""
    if before.is_text and after.is_text:
        return True
    if not nested:
        return False
    scales = [re.fullmatch(r"decimal\(\d+,(\d+)\)", field.type) for field in (before, after)]
    if scales[0] and scales[1]:
        return scales[0][1] == scales[1][1]
    return before.type in _INTEGERS and after.type in _INTEGERS
