"""Partitions as a condition on the partition columns, which is all that OPTIMIZE and REORG take after WHERE."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.direct_lake.sql import literal, quoted
from mirror_assets.source.actions import Metadata
from mirror_assets.source.schema import parse_schema

PartitionKey = tuple[str | None, ...]
"""Values of the partition columns, in the order of the metadata."""


def partition_predicate(metadata: Metadata, keys: Sequence[PartitionKey]) -> str:
    """The condition that holds for these partitions, at least one, and for no others. Raises SchemaUnreadable."""
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
    told = [literal(value, column_type) for value in values if value is not None]
    conditions = []
    if len(told) == 1:
        conditions.append(f"{quoted(column)} = {told[0]}")
    elif told:
        conditions.append(f"{quoted(column)} IN ({', '.join(told)})")
    if None in values:
        conditions.append(f"{quoted(column)} IS NULL")
    return " OR ".join(conditions)


def _equal(column: tuple[str, str], value: str | None) -> str:
    return _one_of(*column, [value])


def _in_brackets(condition: str) -> str:
    return f"({condition})" if " OR " in condition else condition
