"""Landed columns as Spark expressions, and the columns of the change feed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from mirror_assets.markers import JSON_OPTIONS
from mirror_assets.source.schema import LandedColumn


def quoted(name: str) -> str:
    """The column name in backticks, so that dots and spaces stay part of it."""
    return f"`{name.replace('`', '``')}`"


def landed_value(column: LandedColumn, rows: DataFrame) -> Column:
    """The column's value of `rows` as it lands: nested values as JSON text, everything else as the landing type."""
    value = F.col(quoted(column.name))
    return json_text(value, rows.schema[column.name].dataType) if column.nested else value


def optional(value: Column, column: LandedColumn) -> Column:
    """The value in an OPTIONAL Parquet column: a REQUIRED one can't be dropped later (reference `landing-zone` §4.25).

    The condition is always true; Spark just can't know, and a constant would be optimised away with the nullability.
    """
    return value if column.nullable else F.when(F.monotonically_increasing_id() >= 0, value)


def described(columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> list[Column]:
    """The landed columns of rows that have them by name; the first carries the receipt into every file's footer."""
    return _carrying([F.col(quoted(column.name)) for column in columns], columns, footer)


def row_id(rows: DataFrame) -> Column:
    """The id that row tracking gives each row, also where a column is called `_metadata`."""
    return rows.metadataColumn("_metadata").getField("row_id")


def inserted_row(rows: DataFrame, columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> list[Column]:
    """The landed columns of the source's rows; the first carries the receipt likewise."""
    values = [row_id(rows) if column.is_row_id else landed_value(column, rows) for column in columns]
    return _carrying(values, columns, footer)


def _carrying(values: Sequence[Column], columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> list[Column]:
    first, *rest = [optional(value, column) for value, column in zip(values, columns, strict=True)]
    names = [column.name for column in columns]
    carrier = first.alias(names[0], metadata=dict(footer))
    return [carrier, *(value.alias(name) for value, name in zip(rest, names[1:], strict=True))]


def values_where(
    condition: Column, rows: DataFrame, columns: Sequence[LandedColumn], keys: Iterable[str]
) -> list[Column]:
    """The landed values where the condition holds, and everywhere those of the keys: what a shuffle has to carry."""
    always = set(keys)
    return [
        landed_value(column, rows).alias(column.name)
        if column.name in always
        else F.when(condition, landed_value(column, rows)).alias(column.name)
        for column in columns
    ]


def unused_prefix(columns: Sequence[LandedColumn]) -> str:
    """What no column's name begins with, for columns of an encoder's own; Spark compares names without case."""
    taken, mark = {column.name.lower() for column in columns}, "__"
    while any(name.startswith(mark) for name in taken):
        mark += "_"
    return mark


CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"


def is_new_row() -> Column:
    """Whether a row of a feed is what a key has after its commit, and not what it had before."""
    return F.col(CHANGE_TYPE).isin("insert", "update_postimage")


# As a map's key, Spark writes what it holds in memory of these: a number of days or microseconds, an object's address.
_WRITTEN_AS_HELD = (BinaryType, DateType, TimestampType, TimestampNTZType)
_NESTED_KEYS = (StructType, ArrayType)


def json_text(value: Column, kind: DataType) -> Column:
    """The nested value as JSON text; a map's key is the text that it would be as a value."""
    return F.to_json(_with_text_keys(value, kind), dict(JSON_OPTIONS))


def _with_text_keys(value: Column, kind: DataType) -> Column:
    """The value with text for keys, wherever in it a map lies whose keys Spark would not write as values."""
    if not _has_odd_keys(kind):
        return value
    if isinstance(kind, StructType):
        members = [_with_text_keys(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
        return F.when(value.isNotNull(), F.struct(*members))
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.transform(value, lambda member: _with_text_keys(member, element))
    assert isinstance(kind, MapType)  # noqa: S101 nothing else has keys
    return _map_with_text_keys(value, kind)


def _map_with_text_keys(value: Column, kind: MapType) -> Column:
    of_key, of_value = kind.keyType, kind.valueType
    if _is_odd(of_key):
        value = F.transform_keys(value, lambda key, _: _key_text(key, of_key))
    if _has_odd_keys(of_value):
        value = F.transform_values(value, lambda _, member: _with_text_keys(member, of_value))
    return value


def _key_text(key: Column, kind: DataType) -> Column:
    if isinstance(kind, _NESTED_KEYS):
        return json_text(key, kind)
    return F.get_json_object(F.to_json(F.struct(key.alias("k")), dict(JSON_OPTIONS)), "$.k")


def _is_odd(kind: DataType) -> bool:
    return isinstance(kind, _WRITTEN_AS_HELD + _NESTED_KEYS)


def _has_odd_keys(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_odd_keys(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_odd_keys(kind.elementType)
    return isinstance(kind, MapType) and (_is_odd(kind.keyType) or _has_odd_keys(kind.valueType))
