"""Finds the keys whose rows differ between a source and its mirror, by hashes of rows in buckets of keys.

No row is left out by a filter: Spark would push it to Delta's reader, which leaves out files by statistics and
partition values. A row that doesn't count is marked, and the aggregates leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirror_assets.spark_api import arrow_table
from mirror_assets.verify.landed_values import landed_as

# A thousand keys that differ lie in buckets with 6 % of the rows; with 4,096 buckets, in 22 %. More would cost: the
# sums of 4,096, 16,384 and 65,536 buckets took 2.3, 3.1 and 3.2 s of 6 million rows, as they leave processor caches.
BUCKETS = 1 << 14
COUNTS = "_counts"
_BUCKET_SALT, _ROW_SALT, _KEY_SALT = 1, 2, 3
# Bits of a hash are summed in three limbs: a bigint holds each for up to 2^41 rows, faster than one decimal.
_LIMBS = (0, 22, 44)
_LIMB_MASK = (1 << 22) - 1
# Keeps 40 bits of a column's hash: a bigint sums up to 8 million rows of one key without overflow.
_COLUMN_SHIFT = 24

BucketTotals = dict[int, tuple[int, ...]]
"""By bucket, the number of rows and the sums of their hashes: equal for equal rows, whatever their order."""


@dataclass(frozen=True)
class Sides:
    """Source and mirror with the same landed columns c0, c1, …; `identity` are those that identify a row.

    The column `COUNTS` says whether a row is compared; it is never NULL.
    """

    source: DataFrame
    mirror: DataFrame
    identity: tuple[str, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """The columns beside `identity`."""
        return tuple(name for name in self.source.columns if name not in (*self.identity, COUNTS))


def bucket_totals(side: DataFrame, identity: Sequence[str]) -> BucketTotals:
    """Sum the hashes of all rows that are compared, in one scan; buckets without rows are left out."""
    names = [name for name in side.columns if name != COUNTS]
    hashed = side.select(
        F.when(F.col(COUNTS), _bucket(side, identity)).alias("bucket"),
        F.when(F.col(COUNTS), row_hash(side, names, _ROW_SALT)).alias("hash"),
    )
    limbs = (F.shiftrightunsigned("hash", shift).bitwiseAND(F.lit(_LIMB_MASK)) for shift in _LIMBS)
    totals = hashed.groupBy("bucket").agg(F.count(F.lit(1)), *map(F.sum, limbs))
    buckets, *sums = (column.to_pylist() for column in arrow_table(totals).columns)
    # The group without a bucket has the rows that are not compared.
    return {
        bucket: of_one for bucket, of_one in zip(buckets, zip(*sums, strict=True), strict=True) if bucket is not None
    }


def differing_rows(sides: Sides, buckets: frozenset[int]) -> DataFrame:
    """Return each identity in these buckets whose rows differ, with `source_rows` and `mirror_rows`, their numbers.

    Each other column is a BOOLEAN: whether its values differ, where both sides have rows. It groups the union of both
    sides, and doesn't join them: NULL keys meet, and duplicate keys don't multiply. The rows of all other buckets are
    one group without a side, whose numbers are 0.
    """
    identity, others = sides.identity, sides.others
    both = _marked(sides.source, sides, buckets, 1).unionByName(_marked(sides.mirror, sides, buckets, -1))
    counted = both.groupBy(*identity, "_key").agg(
        F.count_if(F.col("_side") == 1).alias("source_rows"),
        F.count_if(F.col("_side") == -1).alias("mirror_rows"),
        *(F.sum(F.col("_side") * F.col(name)).alias(name) for name in others),
    )
    on_both = (F.col("source_rows") > 0) & (F.col("mirror_rows") > 0)
    flagged = counted.withColumns({name: on_both & (F.col(name) != 0) for name in others})
    unequal = F.col("source_rows") != F.col("mirror_rows")
    for name in others:
        unequal = unequal | F.col(name)
    return flagged.where(unequal).drop("_key")


def _marked(side: DataFrame, sides: Sides, buckets: frozenset[int], sign: int) -> DataFrame:
    """Return the rows with their side, identity and hashes; all NULL for rows outside of these buckets."""
    is_wanted = F.col(COUNTS)
    if len(buckets) <= BUCKETS // 2:  # to look up more of them would cost more than it saves
        marked = side.withColumn("_bucket", _bucket(side, sides.identity))
        # As text: each number as a Column of its own would be a call of the JVM.
        is_wanted = is_wanted & F.expr(f"_bucket IN ({', '.join(map(str, sorted(buckets))) or 'NULL'})")
    else:
        marked = side
    key = row_hash(side, sides.identity, _KEY_SALT)
    # With the key in its hash, a value that moved to another row of the same key differs.
    hashes = (F.shiftright(F.xxhash64(key, _column_hash(side, name)), _COLUMN_SHIFT) for name in sides.others)
    values = dict(zip(sides.others, hashes, strict=True)) | {name: F.col(name) for name in sides.identity}
    values |= {"_side": F.lit(sign), "_key": key}
    return marked.select(*(F.when(is_wanted, value).alias(name) for name, value in values.items()))


def _bucket(side: DataFrame, identity: Sequence[str]) -> Column:
    return F.pmod(row_hash(side, identity, _BUCKET_SALT), F.lit(BUCKETS)).cast("int")


def row_hash(side: DataFrame, names: Sequence[str], salt: int) -> Column:
    """Return a 64-bit hash of these columns: rows with equal hashes can be taken as identical, bit for bit.

    Another salt gives an independent hash. Each column is hashed alone, because Spark's hash of several values
    skips NULL, so a value could move to its neighbour. Nested values can't be hashed: pass their JSON text.
    """
    return F.xxhash64(F.lit(salt), *(_column_hash(side, name) for name in names))


def _column_hash(side: DataFrame, name: str) -> Column:
    """Return the hash of one column: -0.0, 0.0 and NULL have different ones; all NaN have the same."""
    value = F.col(name)
    if landed_as(side.schema[name].dataType.typeName()).is_float:
        # Spark's hash and comparisons take both zeros for one; their texts differ.
        return F.xxhash64(value, (value == 0) & (value.cast("string") == "-0.0"))
    return F.xxhash64(value)
