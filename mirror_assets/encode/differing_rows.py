"""Finds the keys whose rows differ between a source and its mirror, by hashes of rows in buckets of keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from mirror_assets.encode.row_hash import row_hash

# A thousand keys that differ lie in buckets with 6 % of the rows; with 4,096 buckets, in 22 %. More would cost: the
# sums of 4,096, 16,384 and 65,536 buckets took 2.3, 3.1 and 3.2 s of 6 million rows, as they leave processor caches.
BUCKETS = 1 << 14
_BUCKET_SALT = 1
# Bits of a hash are summed in three limbs: a bigint holds each for up to 2^41 rows, faster than one decimal.
_LIMBS = (0, 22, 44)
_LIMB_MASK = (1 << 22) - 1
# Keeps 40 bits of a column's hash: a bigint sums up to 8 million rows of one key without overflow.
_COLUMN_SHIFT = 24

BucketTotals = dict[int, tuple[int, ...]]
"""By bucket, the number of rows and the sums of their hashes: equal for equal rows, whatever their order."""


@dataclass(frozen=True)
class Sides:
    """Source and mirror with the same landed columns c0, c1, …; `identity` are those that identify a row."""

    source: DataFrame
    mirror: DataFrame
    identity: tuple[str, ...]


def bucket_totals(side: DataFrame, identity: Sequence[str]) -> BucketTotals:
    """Sum the hashes of all rows, in one scan; buckets without rows are left out."""
    hashed = side.select(_bucket(side, identity).alias("bucket"), _hash(side, side.columns).alias("hash"))
    limbs = (F.shiftrightunsigned("hash", shift).bitwiseAND(F.lit(_LIMB_MASK)) for shift in _LIMBS)
    totals = hashed.groupBy("bucket").agg(F.count(F.lit(1)), *map(F.sum, limbs))
    buckets, *sums = (column.to_pylist() for column in totals.toArrow().columns)
    return dict(zip(buckets, zip(*sums, strict=True), strict=True))


def totals_change(more: BucketTotals, less: BucketTotals) -> BucketTotals:
    """Return the change of a table's totals without zeros, from those of the rows that it has more and less."""
    none = (0,) * (1 + len(_LIMBS))
    change = {
        bucket: tuple(new - old for new, old in zip(more.get(bucket, none), less.get(bucket, none), strict=True))
        for bucket in more.keys() | less.keys()
    }
    return {bucket: total for bucket, total in change.items() if any(total)}


def differing_rows(sides: Sides, buckets: frozenset[int], *carried: Column) -> DataFrame:
    """Return each identity in these buckets whose rows differ, with `source_rows` and `mirror_rows`, their numbers.

    Each other column is a BOOLEAN: whether its values differ, where both sides have rows. `carried` are more aggregates
    over both sides' rows; `_side` is 1 in the source's and -1 in the mirror's. It groups the union of both sides, and
    doesn't join them: NULL keys meet, and duplicate keys don't multiply.
    """
    identity, others = sides.identity, [name for name in sides.source.columns if name not in sides.identity]
    both = _in_buckets(sides.source, identity, buckets, 1).unionByName(_in_buckets(sides.mirror, identity, buckets, -1))
    there = both.schema
    hashes = ((name, row_hash([(F.col("_key"), LongType()), (F.col(name), there[name].dataType)])) for name in others)
    grouped = both.groupBy(*identity, "_key").agg(
        F.count_if(F.col("_side") == 1).alias("source_rows"),
        F.count_if(F.col("_side") == -1).alias("mirror_rows"),
        *(F.sum(F.col("_side") * F.shiftright(value, _COLUMN_SHIFT)).alias(name) for name, value in hashes),
        *carried,
    )
    on_both = (F.col("source_rows") > 0) & (F.col("mirror_rows") > 0)
    flagged = grouped.withColumns({name: on_both & (F.col(name) != 0) for name in others})
    unequal = F.col("source_rows") != F.col("mirror_rows")
    for name in others:
        unequal = unequal | F.col(name)
    return flagged.where(unequal).drop("_key")


def _in_buckets(side: DataFrame, identity: Sequence[str], buckets: frozenset[int], sign: int) -> DataFrame:
    """Return the side's rows in these buckets, with their side and the hash of their identity."""
    chosen = side
    if len(buckets) <= BUCKETS // 2:  # a filter by more of them would cost more than it saves
        # As text: each number as a Column of its own would be a call of the JVM.
        listed = f"_bucket IN ({', '.join(map(str, sorted(buckets))) or 'NULL'})"
        chosen = side.withColumn("_bucket", _bucket(side, identity)).where(listed).drop("_bucket")
    return chosen.withColumns({"_side": F.lit(sign), "_key": _hash(side, identity)})


def _bucket(side: DataFrame, identity: Sequence[str]) -> Column:
    return F.pmod(_hash(side, identity, _BUCKET_SALT), F.lit(BUCKETS)).cast("int")


def _hash(side: DataFrame, names: Sequence[str], salt: int = 0) -> Column:
    return row_hash([(F.col(name), side.schema[name].dataType) for name in names], salt)
