"""Partition values and conditions in Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.column_types import column_type
from mirror_assets.source.actions import Metadata
from mirror_assets.source.schema import parse_schema
from mirror_assets.sql_names import quoted

PartitionKey = tuple[str | None, ...]
"""Values of the partition columns, in the order of the metadata."""


def literal(value: str, kind: str) -> str:
    """Return a partition value of the log as a literal of its column's type."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")  # a backslash begins an escape in Spark
    return column_type(kind).literal.format(escaped)


def partition_predicate(metadata: Metadata, keys: Sequence[PartitionKey]) -> str:
    """Return the condition that selects exactly these partitions, at least one. Raises schema_unreadable."""
    types = {field.name: field.type for field in parse_schema(metadata.schema_string).fields}

    def equals(name: str, value: str | None) -> str:
        return f"{quoted(name)} IS NULL" if value is None else f"{quoted(name)} = {literal(value, types[name])}"

    return " OR ".join(" AND ".join(map(equals, metadata.partition_columns, key)) for key in keys)
