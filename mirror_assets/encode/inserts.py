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
from mirror_assets.source.schema import LandedColumn

_ROW_GROUP_BYTES = 256 << 20


def write_parts(frame: DataFrame, folder: str, compression: str, most_rows: int = 0) -> None:
    """Write each Spark partition of `frame` as one Parquet file into the new `folder`. Raises what Spark raises.

    With `most_rows`, a partition that has more rows becomes several files, whose names sort as they were written.
    """
    (
        frame.write.option("compression", compression)
        .option("maxRecordsPerFile", most_rows)
        .option("parquet.block.size", _ROW_GROUP_BYTES)
        # A landing file is read once: it isn't worth a fifth of the encoder's CPU time (docs/performance.md).
        .option("parquet.enable.dictionary", "false")
        .option("mapreduce.fileoutputcommitter.algorithm.version", 2)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        .parquet(folder)
    )


@dataclass(frozen=True)
class SnapshotSlice:
    """What to encode: the table at `uri` as of `version`, or a chunk of it.

    At most `parts` tasks write it, into files of at most `target_rows`.
    """

    uri: str
    version: int
    columns: tuple[LandedColumn, ...]
    parts: int
    target_rows: int
    chunk: FileChunk | None = None


def encode_snapshot(
    spark: SparkSession, slice_: SnapshotSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> int:
    """Write the table's rows into `folder`; the number of rows. An empty table gives one typed file without rows.

    Raises what `spark_error` makes of Spark's exceptions, and SourceUnreadable as `read_files` does.
    """
    with spark_errors(f"{slice_.uri}, encoding version {slice_.version} into {folder}"):
        source = _source(spark, slice_)
        write_parts(snapshot_rows(source, slice_, footer), folder, compression, slice_.target_rows)
        return _rows(source)


def snapshot_rows(source: DataFrame, slice_: SnapshotSlice, footer: Mapping[str, str]) -> DataFrame:
    """The landed rows; fewer partitions than the scan has are merged without a shuffle."""
    return source.select(*inserted_row(source, slice_.columns, footer)).coalesce(slice_.parts)


def _rows(source: DataFrame) -> int:
    """Rows of its files, reading no column; counting them on the way costs far more, and `count` asks the log alone."""
    return int(source.agg(F.coalesce(F.sum(F.lit(1)), F.lit(0))).collect()[0][0])


def _source(spark: SparkSession, slice_: SnapshotSlice) -> DataFrame:
    if slice_.chunk:
        return read_files(spark, slice_.uri, slice_.version, slice_.chunk)
    return read_version(spark, slice_.uri, slice_.version)


@dataclass(frozen=True)
class AppendSlice:
    """What to encode: the rows that commits `first` to `last` of the table at `uri` add.

    At most `parts` tasks write them, into files of at most `target_rows`.
    """

    table: str
    uri: str
    first: int
    last: int
    columns: tuple[LandedColumn, ...]
    parts: int
    target_rows: int


def encode_appends(
    spark: SparkSession, slice_: AppendSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> int:
    """Write the added rows into `folder`; the number of rows.

    Raises RowsChanged when a commit turns out to remove rows, SessionUnfit, and what `spark_error` makes of Spark's
    exceptions.
    """
    with spark_errors(f"{slice_.table}, encoding versions {slice_.first} to {slice_.last} into {folder}"):
        changes = read_appends(spark, slice_.uri, slice_.first, slice_.last)
        rows, inserted = _counted(changes)
        if rows > inserted:
            why = f"{rows - inserted} rows are removed in versions {slice_.first} to {slice_.last}"
            raise RowsChanged(slice_.table, slice_.first, why)
        write_parts(appended_rows(changes, slice_, footer), folder, compression, slice_.target_rows)
        return inserted


def _counted(changes: DataFrame) -> tuple[int, int]:
    """All rows, and those that are added; no column is read for it, and counting on the way costs far more."""
    is_added = F.col(CHANGE_TYPE) == "insert"
    row = changes.agg(F.count(F.lit(1)), F.count_if(is_added)).collect()[0]
    return int(row[0]), int(row[1])


def appended_rows(changes: DataFrame, slice_: AppendSlice, footer: Mapping[str, str]) -> DataFrame:
    """The landed rows; their order is free, so fewer partitions than the scan has are merged without a shuffle."""
    return changes.select(*inserted_row(changes, slice_.columns, footer)).coalesce(slice_.parts)


def encode_no_rows(
    spark: SparkSession, columns: Sequence[LandedColumn], folder: str, compression: str, footer: Mapping[str, str]
) -> None:
    """Write one file with the columns, without marker column and rows, into `folder`. Raises SparkFailed and its like.

    No table is read.
    """
    typed = [F.lit(None).cast(column.type).alias(column.name) for column in columns]
    with spark_errors(folder):
        nothing = spark.range(0, 0, 1, 1).select(*typed)
        write_parts(nothing.select(*described(columns, footer)), folder, compression)
