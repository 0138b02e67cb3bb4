"""Names, values and conditions as Spark SQL writes them."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.source.actions import Metadata
from mirror_assets.source.schema import parse_schema

_BARE = frozenset({"tinyint", "smallint", "int", "bigint", "boolean"})
_TYPED = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ"}
# 1.1 alone would be a decimal, which no float is equal to.
_CAST = frozenset({"float", "double", "binary"})


def table_at(uri: str) -> str:
    """Name the table at an address: delta.`…`."""
    return f"delta.{quoted(uri)}"


def quoted(name: str) -> str:
    """Write the name in backticks, so that dots, spaces and backticks stay part of it."""
    return f"`{name.replace('`', '``')}`"


def text(value: str) -> str:
    """Write a string literal; a backslash begins an escape in Spark's."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def literal(value: str, column_type: str) -> str:
    """Write a partition's value in the log as a literal of its column's type."""
    if column_type in _BARE or column_type.startswith("decimal("):
        return value
    if column_type in _CAST:
        return f"CAST({text(value)} AS {column_type.upper()})"
    return f"{_TYPED[column_type]} {text(value)}" if column_type in _TYPED else text(value)


PartitionKey = tuple[str | None, ...]
"""Values of the partition columns, in the order of the metadata."""


def partition_predicate(metadata: Metadata, keys: Sequence[PartitionKey]) -> str:
    """Write the condition that holds for these partitions, at least one, and for no others. Raises SchemaUnreadable."""
    types = {field.name: field.type for field in parse_schema(metadata.schema_string).fields}
    columns = [(name, types[name]) for name in metadata.partition_columns]
    if len(columns) == 1:
        return _one_of(*columns[0], [key[0] for key in keys])
    groups: dict[PartitionKey, list[str | None]] = {}
    for key in keys:
        groups.setdefault(key[:-1], []).append(key[-1])
    return " OR ".join(
        f"({' AND '.join([*map(_equal, columns, head), _in_brackets(_one_of(*columns[-1], last))])})"
        for head, last in groups.items()
    )


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


def _equal(column: tuple[str, str], value: str | None) -> str:
    return _one_of(*column, [value])


def _in_brackets(condition: str) -> str:
    return f"({condition})" if " OR " in condition else condition
