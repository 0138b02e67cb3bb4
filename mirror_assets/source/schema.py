"""A source's schema as values, what of it lands, and the differences between two schemas of one source."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

from mirror_assets.column_types import (
    LAND_AS_TEXT,
    SPARK_NAMES,
    ColumnType,
    Family,
    NtzLanding,
    column_type,
    decimal_digits,
)
from mirror_assets.source.errors import COLUMN_UNFIT, SCHEMA_UNREADABLE


@dataclass(frozen=True)
class LandedColumn:
    """A landed column: its name, its landing type as Spark spells it, and whether the source's is nested or nullable.

    `is_row_id`: the id that row tracking gives each row, which is not a column of the source. `sql`: the Spark SQL
    expression over the source's columns that computes its values, if it is not the source's column; it may have
    secrets. `expression` is the expression's fingerprint.
    """

    name: str
    type: str
    nested: bool = False
    nullable: bool = True
    is_row_id: bool = False
    sql: str = dataclasses.field(default="", repr=False)
    expression: str | None = None


@dataclass(frozen=True)
class Projection:
    """A condition in Spark SQL, or empty for all rows; the computed columns; and the source's columns that both use.

    The condition and the expressions may have secrets. `ntz` is the form in which the source's columns of type
    `timestamp_ntz` land; expressions have them as they are.
    """

    where: str = dataclasses.field(default="", repr=False)
    computed: tuple[LandedColumn, ...] = ()
    uses: tuple[str, ...] = ()
    ntz: NtzLanding = NtzLanding.AS_IS


ALL_ROWS = Projection()


@dataclass(frozen=True)
class Field:
    """One column, or one member of a nested column (a struct's field, `element`, `key` or `value`)."""

    name: str
    type: str
    nullable: bool = True
    field_id: int | None = None
    physical_name: str | None = None
    children: tuple[Field, ...] = ()
    comment: str = dataclasses.field(default="", compare=False)

    @property
    def kind(self) -> ColumnType:
        """The row of its type, without digits, lengths and members."""
        return column_type(self.type)


@dataclass(frozen=True)
class Schema:
    """The columns of a source at one version; equal when names, types, nullability, order and column ids are.

    Comments, defaults and an identity column's high-water mark (rewritten by every insert) are left out.
    """

    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        """Return the column called `name`, in exactly this spelling, or None."""
        return next((field for field in self.fields if field.name == name), None)


@lru_cache(maxsize=128)
def parse_schema(text: str) -> Schema:
    """Parse a metaData action's `schemaString`. Raises SCHEMA_UNREADABLE."""
    try:
        return Schema(_fields(json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SCHEMA_UNREADABLE(why=repr(error)) from error


def canonical(schema_string: str) -> str:
    """Return the same JSON with its keys sorted, because deltalake returns them in any order."""
    try:
        return json.dumps(json.loads(schema_string), sort_keys=True, separators=(",", ":"))
    except json.JSONDecodeError as error:
        raise SCHEMA_UNREADABLE(why=str(error)) from error


def landing_type(field: Field, table: str, ntz: NtzLanding = NtzLanding.AS_IS) -> str:
    """Return the column's type in a landing file as Spark spells it; nested columns and variants land as JSON text.

    Raises COLUMN_UNFIT for void, intervals and types unknown to us (reference `delta` §7).
    """
    if field.kind.family is Family.REFUSED:
        raise COLUMN_UNFIT(column=field.name, column_type=field.type, table=table)
    return "string" if field.kind.family in LAND_AS_TEXT else ntz.landed(field.type)


def _fields(struct: Mapping[str, Any]) -> tuple[Field, ...]:
    if struct["type"] != "struct":
        raise ValueError(f"{struct['type']!r} is no struct")
    return tuple(_column(column) for column in struct["fields"])


def _column(raw: Mapping[str, Any]) -> Field:
    metadata = raw.get("metadata") or {}
    char_type = metadata.get("__CHAR_VARCHAR_TYPE_STRING") if raw["type"] == "string" else None
    comment = metadata.get("comment")
    plain = _member(raw["name"], raw["type"], nullable=raw.get("nullable", True))
    return dataclasses.replace(
        plain,
        type=char_type or plain.type,
        field_id=metadata.get("delta.columnMapping.id"),
        physical_name=metadata.get("delta.columnMapping.physicalName"),
        comment=comment if isinstance(comment, str) else "",
    )


def _member(name: str, raw: str | Mapping[str, Any], *, nullable: bool) -> Field:
    """Return a column, or a member of a nested one, with its type as Spark spells it."""
    if not isinstance(name, str) or not isinstance(nullable, bool):
        raise TypeError(f"{name!r} is no column")
    if isinstance(raw, str):
        return Field(name, SPARK_NAMES.get(raw, raw), nullable)
    if raw["type"] == "array":
        children: tuple[Field, ...] = (_member("element", raw["elementType"], nullable=raw.get("containsNull", True)),)
    elif raw["type"] == "map":
        value = _member("value", raw["valueType"], nullable=raw.get("valueContainsNull", True))
        children = (_member("key", raw["keyType"], nullable=False), value)
    else:
        children = _fields(raw)
    named = (f"{child.name}:{child.type}" if raw["type"] == "struct" else child.type for child in children)
    return Field(name, f"{raw['type']}<{','.join(named)}>", nullable, children=children)


class SchemaChangeKind(str, Enum):
    """A kind of difference between two schemas."""

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
    """A difference between two schemas.

    `column` is the top-level column by its old name (an added one: by its new name), `path` the member itself in dots;
    `before` and `after` are the types, names, or nullability that differ.
    """

    kind: SchemaChangeKind
    column: str
    path: str
    before: str = ""
    after: str = ""

    @property
    def is_breaking(self) -> bool:
        """Whether rows that landed before would differ from the source, or could not be read any more."""
        # The members of a nested column land in their order, as JSON text.
        is_nested_move = self.kind is SchemaChangeKind.MOVED and self.path != self.column
        return self.kind in _BREAKING or is_nested_move

    def __str__(self) -> str:
        """The difference as a sentence."""
        if self.kind in (SchemaChangeKind.ADDED, SchemaChangeKind.DROPPED, SchemaChangeKind.MOVED):
            return f"column `{self.path}` was {self.kind.value}"
        return f"column `{self.path}` was {self.kind.value} from {self.before} to {self.after}"


def compare_schemas(before: Schema, after: Schema) -> tuple[SchemaChange, ...]:
    """Return every difference, by column; empty when both are equal.

    Columns are matched by id and physical name if both schemas have them (column mapping), which detects a rename, or a
    column dropped and added again under its old name; else by name. A nested column lands as JSON text: a change in it
    is breaking if the text of unchanged rows would change.
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
            yield from _column_changes(field, new[key], column, path, nested=top is not None)
        else:
            yield SchemaChange(SchemaChangeKind.DROPPED, column, path)
    for key, field in new.items():
        if key not in old:
            yield SchemaChange(SchemaChangeKind.ADDED, top or field.name, prefix + field.name)
    kept_before, kept_after = [key for key in old if key in new], [key for key in new if key in old]
    for was, now in zip(kept_before, kept_after, strict=True):
        if was != now:
            yield SchemaChange(SchemaChangeKind.MOVED, top or old[now].name, prefix + old[now].name)


def _column_changes(before: Field, after: Field, column: str, path: str, *, nested: bool) -> Iterator[SchemaChange]:
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
    """Whether the landed value of an unchanged row is the same under the new type."""
    families = {before.kind.family, after.kind.family}
    if families == {Family.DECIMAL}:
        scales = {digits[1] for field in (before, after) if (digits := decimal_digits(field.type))}
        return nested and len(scales) == 1
    return families == {Family.TEXT} or (nested and families == {Family.WHOLE})
