"""Reads a Delta table's change feed: the fastest reader that the session allows, behind one function.

`readChangeFeed` is the public contract. It goes through RDD[Row]; `CDCReader.changesToBatchDF` gives the same rows as
a vectorised scan, 1.5 to 2 times as fast, but is private: it is used only in a classic session and with the Delta
version on which a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.delta.columns import quoted
from mirror_assets.delta.versions import TableVersion, has_own_reader, require_own_reader

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"

# Delta compares the deletion vectors of each commit in a scan of its own; many in one read take far longer than a few.
_VECTORS_AT_ONCE = 8


def is_new_row() -> Column:
    """Whether a row of a feed is what a key has after its commit, and not what it had before."""
    return F.col(CHANGE_TYPE).isin("insert", "update_postimage")


def read_changes(
    spark: SparkSession, uri: str, first: int, last: int, vector_versions: Sequence[int] = ()
) -> DataFrame:
    """The change feed of commits `first` to `last` in the schema of `last`: the table's columns and Delta's three.

    `vector_versions` are the commits whose rows come from comparing deletion vectors: few of them are read at a time.
    """
    if has_own_reader(spark):
        ranges = sub_ranges(first, last, vector_versions)
        return reduce(DataFrame.union, (_vectorised(spark, uri, begin, end, last) for begin, end in ranges))
    return read_changes_public(spark, uri, first, last)


def feed_rows(
    spark: SparkSession, uri: str, first: int, last: int, vector_versions: Sequence[int], limit: int
) -> tuple[str, ...]:
    """Up to `limit` rows of the same, ordered by version, each as a JSON object that begins with Delta's columns."""
    frame = read_changes(spark, uri, first, last, vector_versions)
    names = [COMMIT_VERSION, COMMIT_TIMESTAMP, CHANGE_TYPE]
    names += [name for name in frame.columns if name not in names]
    row = F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), {"ignoreNullFields": "false"})
    return tuple(found[0] for found in frame.orderBy(COMMIT_VERSION).limit(limit).select(row).collect())


def sub_ranges(first: int, last: int, vector_versions: Sequence[int]) -> list[tuple[int, int]]:
    """`first` to `last` in ranges with a few commits of deletion vectors each."""
    ends = [version - 1 for version in sorted(vector_versions)[_VECTORS_AT_ONCE::_VECTORS_AT_ONCE]]
    return list(zip([first, *(end + 1 for end in ends)], [*ends, last], strict=True))


def read_appends(spark: SparkSession, uri: str, first: int, last: int) -> DataFrame:
    """The rows of files that commits `first` to `last` add, as inserts, and of those that they remove, as deletes.

    It needs no change data feed, and ignores one. Delta has no public reader for it: raises SessionUnfit where the
    private one can't be used.
    """
    require_own_reader(spark, "`changes: append_only`")
    return _vectorised(spark, uri, first, last, last, coarse=True)


def read_changes_public(spark: SparkSession, uri: str, first: int, last: int) -> DataFrame:
    """The same through Delta's public reader; also the oracle of the fast one."""
    return (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", first)
        .option("endingVersion", last)
        .load(uri)
    )


def _vectorised(
    spark: SparkSession, uri: str, first: int, last: int, schema_of: int, *, coarse: bool = False
) -> DataFrame:
    jvm = spark._jvm  # noqa: SLF001 the only way to Delta's own reader
    none = jvm.scala.Option.empty()
    table = TableVersion.opened(spark, uri, schema_of)
    reader = getattr(getattr(jvm.org.apache.spark.sql.delta.commands.cdc, "CDCReader$"), "MODULE$")
    frame = reader.changesToBatchDF(
        table.log,
        first,
        last,
        spark._jsparkSession,  # noqa: SLF001
        none,
        jvm.scala.Option.apply(table.snapshot),
        coarse,  # from added and removed files alone, for tables without a feed
        none,
    )
    return DataFrame(frame, spark)
