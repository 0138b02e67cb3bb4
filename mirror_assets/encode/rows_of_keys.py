"""Finds the rows of changed keys among rows that are mostly of other keys; only those that land move.

Nothing grows with the number of keys but what Spark spills: few keys are broadcast. For more, a map of bits is, whose
size is fixed: it leaves out most rows of other keys where they are read, and those that remain are sorted by key.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirror_assets.encode.columns import HelperNames
from mirror_assets.spark_names import quoted

# At most this many keys are broadcast: what that takes is bounded.
BROADCAST_KEYS = 200_000
# Words of 64 bits in the map: some thirty megabytes at most. Of two million keys, it lets 6 % of the rows of
# other keys pass; of ten million, 26 %.
_WORDS = 1 << 19


def rows_of_keys(
    changed: DataFrame,
    has_row: Column,
    rows: DataFrame,
    keys: Mapping[str, str],
    ours: HelperNames,
    parts: int,
    *,
    is_few: bool,
) -> DataFrame:
    """Return each changed key with its row, in `parts` Spark partitions by key; NULL where `has_row` is false.

    `changed` has each key once, in the columns that `keys` has by their names in `rows`. NULL keys are equal. A key
    that `rows` has twice is there twice. One whose row isn't found is missing or has NULL in `ours.is_found`, which is
    1 otherwise.
    """
    marked = rows.withColumn(ours.is_found, F.lit(1))
    if is_few:
        same = [F.col(key).eqNullSafe(F.col(quoted(name))) for name, key in keys.items()]
        found = marked.join(F.broadcast(changed.where(has_row)), same)
        nulls = (F.lit(None).cast(field.dataType).alias(field.name) for field in marked.schema)
        gone = changed.where(~has_row).select(*nulls, *changed.columns)
        return found.union(gone).repartition(parts, *keys.values())
    # Structs are never NULL, and equal if their fields are, NULL or not; for keys that are compared with <=>, Spark
    # would shuffle both sides again. The hash comes first: a sort compares eight bytes without reading rows.
    names = ((F.col(quoted(name)).cast(changed.schema[key].dataType), key) for name, key in keys.items())
    typed = F.struct(*(value.alias(key) for value, key in names))
    hashed = changed.withColumn(ours.key_hash, F.xxhash64(*keys.values()))
    hashed = hashed.withColumn(ours.key_values, F.struct(*keys.values()))
    passing = (
        marked.withColumn(ours.row_values, typed)
        .withColumn(ours.row_hash, F.xxhash64(*(F.col(ours.row_values).getField(key) for key in keys.values())))
        .join(F.broadcast(_map_of_keys(hashed.where(has_row), ours)), _word(ours.row_hash) == F.col(ours.word))
        .where(F.expr(f"getbit({ours.bits}, CAST({ours.row_hash} & 63 AS INT)) = 1"))
        .drop(ours.word, ours.bits)
    )
    by_key = [F.col(ours.key_hash) == F.col(ours.row_hash), F.col(ours.key_values) == F.col(ours.row_values)]
    joined = (
        hashed.repartition(parts, ours.key_hash, ours.key_values)
        .hint("merge")
        .join(passing.repartition(parts, ours.row_hash, ours.row_values), by_key, "left")
    )
    # When Spark plans a join again while it runs, it sometimes gives both sides the default number of partitions
    # instead: without `coalesce`, a thousand files in place of one.
    return joined.coalesce(parts)


def _map_of_keys(hashed: DataFrame, ours: HelperNames) -> DataFrame:
    """Return the words of the map that have a bit of one of the keys."""
    bits = F.expr(f"bit_or(shiftleft(1L, CAST({ours.key_hash} & 63 AS INT)))").alias(ours.bits)
    return hashed.groupBy(_word(ours.key_hash).alias(ours.word)).agg(bits)


def _word(hash_: str) -> Column:
    return F.shiftright(F.col(hash_), 6).bitwiseAND(_WORDS - 1)
