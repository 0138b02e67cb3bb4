"""Encodes inserts: appended rows, snapshots, and the file without rows that begins an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, described, inserted_row
from mirror_assets.encode.feed_reader import read_appends
from mirror_assets.encode.private.table_version import read_files, read_version
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.source.batching import FileChunk
from mirror_assets.source.errors import RowsChanged
from mirror_assets.source.projection import ALL_ROWS, Projection
from mirror_assets.source.schema import LandedColumn

_ROW_GROUP_BYTES = 256 << 20


def write_parts(frame: DataFrame, folder: str, compression: str, most_rows: int = 0) -> None:
    """Write each Spark partition of `frame` as one Parquet file into the new `folder`. Raises what Spark raises.

    `most_rows` above 0 splits a partition into files of at most that many rows; their names sort in writing order.
    """
    (
        frame.write.option("compression", compression)
        .option("maxRecordsPerFile", most_rows)
        .option("parquet.block.size", _ROW_GROUP_BYTES)
        # Dictionaries cost a fifth of the encoder's CPU time; a landing file is read only once (docs/performance.md).
        .option("parquet.enable.dictionary", "false")
        .option("mapreduce.fileoutputcommitter.algorithm.version", 2)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        .parquet(folder)
    )


@dataclass(frozen=True)
class SnapshotSlice:
    """A snapshot to encode: all rows of the table at `uri` as of `version`, or those of one chunk of its files.

    At most `parts` Spark tasks write files of at most `target_rows` rows each.
    """

    uri: str
    version: int
    columns: tuple[LandedColumn, ...]
    parts: int
    target_rows: int
    chunk: FileChunk | None = None
    projection: Projection = ALL_ROWS


def encode_snapshot(
    spark: SparkSession, slice_: SnapshotSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> int:
    """Write the snapshot's rows into `folder` and return their number; an empty table becomes one file without rows.

    Raises SourceUnreadable when Spark and the log disagree about the number of files, and the errors of `spark_error`.
    """
    with spark_errors(f"{slice_.uri}, encoding version {slice_.version} into {folder}"):
        if slice_.chunk:
            source = read_files(spark, slice_.uri, slice_.version, slice_.chunk, slice_.projection)
        else:
            source = read_version(spark, slice_.uri, slice_.version, slice_.projection)
        # Spark merges the scan's partitions without a shuffle.
        rows = source.select(*inserted_row(source, slice_.columns, footer)).coalesce(slice_.parts)
        write_parts(rows, folder, compression, slice_.target_rows)
        # Scans without reading a column, except those of a condition. `count()` would take the number from Delta's
        # statistics, and an Observation during the write costs far more.
        return int(source.agg(F.coalesce(F.sum(F.lit(1)), F.lit(0))).collect()[0][0])


@dataclass(frozen=True)
class AppendSlice:
    """Appends to encode: the rows that commits `first` to `last` add to the table at `uri`.

    At most `parts` Spark tasks write files of at most `target_rows` rows each.
    """

    table: str
    uri: str
    first: int
    last: int
    columns: tuple[LandedColumn, ...]
    parts: int
    target_rows: int
    projection: Projection = ALL_ROWS


def encode_appends(
    spark: SparkSession, slice_: AppendSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> int:
    """Write the appended rows into `folder` and return their number.

    Raises RowsChanged when a commit removes rows, session_unfit without Delta's private reader, and the errors of
    `spark_error`.
    """
    with spark_errors(f"{slice_.table}, encoding versions {slice_.first} to {slice_.last} into {folder}"):
        changes = read_appends(spark, slice_.uri, slice_.first, slice_.last, slice_.projection)
        # Reads no data column; an Observation during the write costs far more.
        counted = changes.agg(F.count(F.lit(1)), F.count_if(F.col(CHANGE_TYPE) == "insert")).collect()[0]
        rows, inserted = int(counted[0]), int(counted[1])
        if rows > inserted:
            why = f"{rows - inserted} rows are removed in versions {slice_.first} to {slice_.last}"
            raise RowsChanged(slice_.table, slice_.first, why)
        write_parts(appended_rows(changes, slice_, footer), folder, compression, slice_.target_rows)
        return inserted


def appended_rows(changes: DataFrame, slice_: AppendSlice, footer: Mapping[str, str]) -> DataFrame:
    """Return the landed rows in at most `parts` partitions; their order is free, so Spark merges without a shuffle."""
    return changes.select(*inserted_row(changes, slice_.columns, footer)).coalesce(slice_.parts)


def encode_no_rows(
    spark: SparkSession, columns: Sequence[LandedColumn], folder: str, compression: str, footer: Mapping[str, str]
) -> None:
    """Write one file with these columns and no rows into `folder`, without a marker column and without reading a table.

    Raises the errors of `spark_error`.
    """
    typed = [F.lit(None).cast(column.type).alias(column.name) for column in columns]
    with spark_errors(folder):
        no_rows = spark.range(0, 0, 1, 1).select(*typed)
        write_parts(no_rows.select(*described(columns, footer)), folder, compression)
