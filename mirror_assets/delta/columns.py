"""How source columns become landed columns: order, nesting as JSON text, and no REQUIRED column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirror_assets.json_text import json_text
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
