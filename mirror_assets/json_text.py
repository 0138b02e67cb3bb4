"""How a nested value is written as JSON text: the same text for the same value, and nothing of it lost."""

from __future__ import annotations

from pyspark.sql import Column
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
