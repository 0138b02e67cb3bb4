"""Partition values and conditions in Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.source.actions import Metadata
from mirror_assets.source.schema import parse_schema
from mirror_assets.source.sql_names import quoted

_BARE = frozenset({"tinyint", "smallint", "int", "bigint", "boolean"})
_TYPED = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ"}
# 1.1 alone would be a decimal, which no float is equal to.
_CAST = frozenset({"float", "double", "binary"})

PartitionKey = tuple[str | None, ...]
"""Values of the partition columns, in the order of the metadata."""


def literal(value: str, column_type: str) -> str:
    """Return a partition value of the log as a literal of its column's type."""
    if column_type in _BARE or column_type.startswith("decimal("):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")  # a backslash begins an escape in Spark
    if column_type in _CAST:
        return f"CAST('{escaped}' AS {column_type.upper()})"
    return f"{_TYPED[column_type]} '{escaped}'" if column_type in _TYPED else f"'{escaped}'"


def partition_predicate(metadata: Metadata, keys: Sequence[PartitionKey]) -> str:
    """Return the condition that selects exactly these partitions, at least one. Raises schema_unreadable."""
    types = {field.name: field.type for field in parse_schema(metadata.schema_string).fields}
    names = metadata.partition_columns
    groups: dict[PartitionKey, list[str | None]] = {}
    for key in keys:
        groups.setdefault(key[:-1], []).append(key[-1])
    conditions = []
    for head, last in groups.items():
        parts = [_one_of(name, types[name], [value]) for name, value in zip(names, head, strict=False)]
        one_of_last = _one_of(names[-1], types[names[-1]], last)
        if not parts:
            return one_of_last
        in_brackets = f"({one_of_last})" if " OR " in one_of_last else one_of_last
        conditions.append(f"({' AND '.join([*parts, in_brackets])})")
    return " OR ".join(conditions)


def _one_of(column: str, column_type: str, values: Sequence[str | None]) -> str:
    literals = [literal(value, column_type) for value in values if value is not None]
    conditions = []
    if len(literals) == 1:
        conditions.append(f"{quoted(column)} = {literals[0]}")
    elif literals:
        conditions.append(f"{quoted(column)} IN ({', '.join(literals)})")
    if None in values:
        conditions.append(f"{quoted(column)} IS NULL")
    return " OR ".join(conditions)
