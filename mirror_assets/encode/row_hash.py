"""Hashes landed values so that rows with equal hashes can be taken as identical, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirror_assets.column_types import Family, column_type
from mirror_assets.encode.columns import landed_value
from mirror_assets.source.schema import LandedColumn


def row_hash(values: Sequence[tuple[Column, str]], salt: int = 0) -> Column:
    """Return a 64-bit hash of the values, which are given with their types; another salt gives an independent hash.

    Unlike Spark's `xxhash64`, it distinguishes -0.0 from 0.0, and values that moved into a NULL neighbour. All NaN are
    one value, as in Delta. Nested values can't be hashed: pass their JSON text, as it lands.
    """
    parts = [F.lit(salt)]
    for value, kind in values:
        parts += [value, value.isNull()]
        if column_type(kind).family is Family.FLOAT:
            # Only a power is negative for -0.0 alone: comparisons, casts to decimal and `atan2` drop the sign.
            parts.append((value == 0) & (F.pow(value, F.lit(-1.0)) < 0))
    return F.xxhash64(*parts)


def value_stamp(rows: DataFrame, columns: Sequence[LandedColumn]) -> tuple[Column, Column]:
    """Return two hashes of the columns' landed values; both are equal only if all values are.

    A column that `rows` doesn't have is NULL; one that is narrower in an older version has the landed type.
    """
    values = []
    for column in columns:
        value = landed_value(column, rows) if column.name in rows.columns else F.lit(None)
        values.append((value.cast(column.type), column.type))
    return row_hash(values, salt=1), row_hash(values, salt=2)
