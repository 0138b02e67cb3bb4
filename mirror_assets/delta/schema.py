"""A source's schema as values, and the landing type of each column."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import pydantic

from mirror_assets.delta.errors import ColumnUnfit, SchemaUnreadable

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
    """One landed column: its name, its landing type as Spark spells it, and what the source has under it.

    `is_row_id`: the source has no such column; it is the id that row tracking gives each row.
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

    @property
    def is_nested(self) -> bool:
        """Whether it lands as JSON text: a struct, an array, a map or a variant."""
        return self.type.startswith(_NESTED)

    @property
    def is_text(self) -> bool:
        """Whether it is stored as a string; char and varchar only limit its length."""
        return self.type.startswith(_TEXT)


@dataclass(frozen=True)
class Schema:
    """The columns of a source at one version; equal when names, types, nullability, order and column ids are.

    Comments, defaults and an identity column's high-water mark (rewritten by every insert) are no part of it.
    """

    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        """The column called `name`, in exactly this spelling, or None."""
        return next((field for field in self.fields if field.name == name), None)


def parse_schema(text: str) -> Schema:
    """The schema that a metaData action's `schemaString` holds. Raises SchemaUnreadable."""
    try:
        return Schema(_fields(_Struct.model_validate_json(text)))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise SchemaUnreadable(f"{first['msg']} at {'.'.join(map(str, first['loc'])) or 'its start'}") from error


def canonical(schema_string: str) -> str:
    """The same schema with its keys in one fixed order: the library gives them in another order each time."""
    try:
        return json.dumps(json.loads(schema_string), sort_keys=True, separators=(",", ":"))
    except json.JSONDecodeError as error:
        raise SchemaUnreadable(str(error)) from error


def landing_type(field: Field) -> str:
    """The type of the column in a landing file as Spark spells it; nested columns and variants land as JSON text.

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
    children = _children(column.type)
    simple = column.metadata.char_type if column.type == "string" and column.metadata.char_type else None
    return Field(
        name=column.name,
        type=simple or _spark_name(column.type, children),
        nullable=column.nullable,
        field_id=column.metadata.field_id,
        physical_name=column.metadata.physical_name,
        children=children,
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
