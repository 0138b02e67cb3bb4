"""How source columns become landed columns: order, nesting as JSON text, and no REQUIRED column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from mirror_assets.markers import JSON_OPTIONS


@dataclass(frozen=True)
class LandedColumn:
    """One landed column: its name, its landing type as Spark spells it, and what the source has under it."""

    name: str
    type: str
    nested: bool = False
    nullable: bool = True


def quoted(name: str) -> str:
    """The column name in backticks, so that dots and spaces stay part of it."""
    return f"`{name.replace('`', '``')}`"


def landed_value(column: LandedColumn) -> Column:
    """The column's value as it lands: nested values as JSON text, everything else as the landing type."""
    value = F.col(quoted(column.name))
    return F.to_json(value, dict(JSON_OPTIONS)) if column.nested else value


def optional(value: Column, column: LandedColumn) -> Column:
    """The value in an OPTIONAL Parquet column: a REQUIRED one can't be dropped later (reference `landing-zone` §4.25).

    The condition is always true; Spark just can't know, and a constant would be optimised away with the nullability.
    """
    return value if column.nullable else F.when(F.monotonically_increasing_id() >= 0, value)


def landed_row(columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> list[Column]:
    """The columns of an inserted row, in order; the first carries the receipt into every file's footer."""
    first, *rest = columns
    landed = [optional(landed_value(first), first).alias(first.name, metadata=dict(footer))]
    return landed + [optional(landed_value(column), column).alias(column.name) for column in rest]
