"""How source columns become landed columns: order, nesting as JSON text, and no REQUIRED column."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirror_assets.json_text import json_text


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


def landed_value(column: LandedColumn, rows: DataFrame) -> Column:
    """The column's value of `rows` as it lands: nested values as JSON text, everything else as the landing type."""
    value = F.col(quoted(column.name))
    return json_text(value, rows.schema[column.name].dataType) if column.nested else value


def optional(value: Column, column: LandedColumn) -> Column:
    """The value in an OPTIONAL Parquet column: a REQUIRED one can't be dropped later (reference `landing-zone` §4.25).

    The condition is always true; Spark just can't know, and a constant would be optimised away with the nullability.
    """
    return value if column.nullable else F.when(F.monotonically_increasing_id() >= 0, value)
