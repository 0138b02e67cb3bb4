"""Reads a Delta table's change feed: the fastest reader that the session allows, behind one function.

`readChangeFeed` is the public contract. It goes through RDD[Row]; `CDCReader.changesToBatchDF` gives the same rows as
a vectorised scan, 1.5 to 2 times as fast, but is private: it is used only in a classic session and with the Delta
version on which a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from importlib.metadata import version

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.delta.columns import quoted

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"

_PROVED_VERSIONS = frozenset({"4.4.0"})

# Delta compares the deletion vectors of each commit in a scan of its own; many in one read take far longer than a few.
_VECTORS_AT_ONCE = 8


def read_changes(
    spark: SparkSession, uri: str, first: int, last: int, vector_versions: Sequence[int] = ()
) -> DataFrame:
    """The change feed of commits `first` to `last` in the schema of `last`: the table's columns and Delta's three.

    `vector_versions` are the commits whose rows come from comparing deletion vectors: few of them are read at a time.
    """
    if version("delta-spark") in _PROVED_VERSIONS and hasattr(spark, "_jsparkSession"):
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


def read_changes_public(spark: SparkSession, uri: str, first: int, last: int) -> DataFrame:
    """The same through Delta's public reader; also the oracle of the fast one."""
    return (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", first)
        .option("endingVersion", last)
        .load(uri)
    )


def _vectorised(spark: SparkSession, uri: str, first: int, last: int, schema_of: int) -> DataFrame:
    jvm = spark._jvm  # noqa: SLF001 the only way to Delta's own reader
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, uri)  # noqa: SLF001
    snapshot = log.getSnapshotAt(schema_of, none, none, none, False)  # noqa: FBT003 py4j knows no keywords
    reader = getattr(getattr(jvm.org.apache.spark.sql.delta.commands.cdc, "CDCReader$"), "MODULE$")
    frame = reader.changesToBatchDF(
        log,
        first,
        last,
        spark._jsparkSession,  # noqa: SLF001
        none,
        jvm.scala.Option.apply(snapshot),
        False,  # noqa: FBT003 not the coarse feed of tables without one
        none,
    )
    return DataFrame(frame, spark)
