"""Reads a Delta table's change feed: the fastest reader that the session allows, behind one function; and its files.

`readChangeFeed` is the public contract. It goes through RDD[Row]; `CDCReader.changesToBatchDF` gives the same rows as
a vectorised scan, 1.5 to 2 times as fast, but is private: it is used only in a classic session and with the Delta
version on which a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from importlib.metadata import version

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.delta.chunks import FileChunk
from mirror_assets.delta.errors import SourceUnreadable

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"

_PROVED_VERSIONS = frozenset({"4.4.0"})

# Delta compares the deletion vectors of each commit in a scan of its own; many in one read take far longer than a few.
_VECTORS_AT_ONCE = 8


def read_changes(
    spark: SparkSession, uri: str, first: int, last: int, vector_versions: Sequence[int] = ()
) -> DataFrame:
    """The change feed of commits `first` to `last` in the schema of `last`: the table's columns and Delta's three.

    `vector_versions` are the commits whose rows come from comparing deletion vectors: few of them are read at a time.
    """
    if _is_proved(spark):
        ranges = sub_ranges(first, last, vector_versions)
        return reduce(DataFrame.union, (_vectorised(spark, uri, begin, end, last) for begin, end in ranges))
    return read_changes_public(spark, uri, first, last)


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


def read_version(spark: SparkSession, uri: str, at: int) -> DataFrame:
    """The table as of version `at`."""
    return spark.read.format("delta").option("versionAsOf", at).load(uri)


def read_files(spark: SparkSession, uri: str, at: int, chunk: FileChunk) -> DataFrame:
    """The rows of some files of version `at`, no others being opened, with that version's schema and deletion vectors.

    Which files these are Spark alone decides, so that every file is in just one chunk. Raises SourceUnreadable where it
    sees another number of files than was planned for, or can't read single files at all.
    """
    if not _is_proved(spark):
        why = "single files of a version can't be read in this session, only whole tables up to `slices.max_rows`"
        raise SourceUnreadable(uri, why)
    jvm = spark._jvm  # noqa: SLF001 as below
    log, snapshot = _snapshot(spark, uri, at)
    none, files = jvm.scala.Option.empty(), snapshot.allFiles()
    if (found := files.count()) != chunk.files:
        raise SourceUnreadable(uri, f"Spark sees {found} files in version {at}, and its log names {chunk.files}")
    no_names = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 0)  # noqa: SLF001
    chosen = files.sort("path", no_names).offset(chunk.first).limit(chunk.end - chunk.first).collectAsList()
    actions = jvm.scala.jdk.javaapi.CollectionConverters.asScala(chosen).toSeq()
    return DataFrame(log.createDataFrame(snapshot, actions, False, none), spark)  # noqa: FBT003 not a stream


def _is_proved(spark: SparkSession) -> bool:
    """Whether what is private in Delta may be used: in a classic session, with a version on which tests compare it."""
    return version("delta-spark") in _PROVED_VERSIONS and hasattr(spark, "_jsparkSession")


def _snapshot(spark: SparkSession, uri: str, at: int) -> tuple[JavaObject, JavaObject]:
    """Delta's log of the table, and its snapshot at the version."""
    jvm = spark._jvm  # noqa: SLF001 the only way to Delta's own reader
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, uri)  # noqa: SLF001
    return log, log.getSnapshotAt(at, none, none, none, False)  # noqa: FBT003 py4j knows no keywords


def _vectorised(spark: SparkSession, uri: str, first: int, last: int, schema_of: int) -> DataFrame:
    jvm = spark._jvm  # noqa: SLF001 the only way to Delta's own reader
    none = jvm.scala.Option.empty()
    log, snapshot = _snapshot(spark, uri, schema_of)
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
