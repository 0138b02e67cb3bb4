"""A source's schema as values, and the differences between two schemas of one source."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Literal

import pydantic

from mirror_assets.source.errors import ColumnUnfit, schema_unreadable

# Delta's names (the protocol's "Schema Serialization Format") as Spark spells them.
_SIMPLE = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    **{name: name for name in ("float", "double", "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz")},
}
_TEXT = ("string", "char(", "varchar(")
_NESTED = ("struct<", "array<", "map<", "variant")


@dataclass(frozen=True)
class LandedColumn:
    """A landed column: its name, its landing type as Spark spells it, and whether the source's is nested or nullable.

    `is_row_id`: the id that row tracking gives each row, which is not a column of the source.
    """

    name: str
    type: str
    nested: bool = False
    nullable: bool = True
    is_row_id: bool = False


class _Raw(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")


class _Metadata(_Raw):
    field_id: int | None = pydantic.Field(default=None, alias="delta.columnMapping.id")
    physical_name: str | None = pydantic.Field(default=None, alias="delta.columnMapping.physicalName")
    char_type: str | None = pydantic.Field(default=None, alias="__CHAR_VARCHAR_TYPE_STRING")
    comment: object = None


class _Column(_Raw):
    name: str
    type: _Type
    nullable: bool = True
    metadata: _Metadata = _Metadata()


class _Struct(_Raw):
    type: Literal["struct"]
    fields: tuple[_Column, ...]


class _Array(_Raw):
    type: Literal["array"]
    element: _Type = pydantic.Field(alias="elementType")
    contains_null: bool = pydantic.Field(default=True, alias="containsNull")


class _Map(_Raw):
    type: Literal["map"]
    key: _Type = pydantic.Field(alias="keyType")
    value: _Type = pydantic.Field(alias="valueType")
    contains_null: bool = pydantic.Field(default=True, alias="valueContainsNull")


_Type = str | _Struct | _Array | _Map


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
    def is_nested(self) -> bool:
        """Whether it lands as JSON text: a struct, an array, a map or a variant."""
        return self.type.startswith(_NESTED)

    @property
    def is_text(self) -> bool:
        """Whether it is stored as a string, as are char and varchar."""
        return self.type.startswith(_TEXT)


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
    """Parse a metaData action's `schemaString`. Raises schema_unreadable."""
    try:
        return Schema(_fields(_Struct.model_validate_json(text)))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise schema_unreadable(f"{first['msg']} at {'.'.join(map(str, first['loc'])) or 'its start'}") from error


def canonical(schema_string: str) -> str:
    """Return the same JSON with its keys sorted, because deltalake returns them in any order."""
    try:
        return json.dumps(json.loads(schema_string), sort_keys=True, separators=(",", ":"))
    except json.JSONDecodeError as error:
        raise schema_unreadable(str(error)) from error


def landing_type(field: Field) -> str:
    """Return the column's type in a landing file as Spark spells it; nested columns and variants land as JSON text.

    Raises ColumnUnfit for void, intervals and types unknown to us (reference `delta` §7).
    """
    if field.is_nested or field.is_text:
        return "string"
    if field.type in _SIMPLE.values() or field.type.startswith("decimal("):
        return field.type
    raise ColumnUnfit(field.name, field.type)


def _fields(struct: _Struct) -> tuple[Field, ...]:
    return tuple(_field(column) for column in struct.fields)


def _field(column: _Column) -> Field:
    children, comment = _children(column.type), column.metadata.comment
    simple = column.metadata.char_type if column.type == "string" and column.metadata.char_type else None
    return Field(
        name=column.name,
        type=simple or _spark_name(column.type, children),
        nullable=column.nullable,
        field_id=column.metadata.field_id,
        physical_name=column.metadata.physical_name,
        children=children,
        comment=comment if isinstance(comment, str) else "",
    )


def _member(name: str, member: _Type, *, nullable: bool) -> Field:
    children = _children(member)
    return Field(name, _spark_name(member, children), nullable, children=children)


def _children(column_type: _Type) -> tuple[Field, ...]:
    if isinstance(column_type, _Struct):
        return _fields(column_type)
    if isinstance(column_type, _Array):
        return (_member("element", column_type.element, nullable=column_type.contains_null),)
    if isinstance(column_type, _Map):
        return (
            _member("key", column_type.key, nullable=False),
            _member("value", column_type.value, nullable=column_type.contains_null),
        )
    return ()


def _spark_name(column_type: _Type, children: tuple[Field, ...]) -> str:
    if isinstance(column_type, str):
        return _SIMPLE.get(column_type, column_type)
    if isinstance(column_type, _Struct):
        return f"struct<{','.join(f'{child.name}:{child.type}' for child in children)}>"
    return f"{column_type.type}<{','.join(child.type for child in children)}>"


_INTEGERS = ("tinyint", "smallint", "int", "bigint")


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
        return self.kind in _BREAKING

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
    if before.is_text and after.is_text:
        return True
    if not nested:
        return False
    scales = [re.fullmatch(r"decimal\(\d+,(\d+)\)", field.type) for field in (before, after)]
    if scales[0] and scales[1]:
        return scales[0][1] == scales[1][1]
    return before.type in _INTEGERS and after.type in _INTEGERS
