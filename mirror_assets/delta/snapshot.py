"""Encodes a table, or a chunk of it, as of one version: all inserts, without a marker column (Fabric's fast path)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.delta.columns import inserted_row
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.delta.versions import read_files, read_version
from mirror_assets.delta.write import write_parts
from mirror_assets.source.batching import FileChunk
from mirror_assets.source.schema import LandedColumn


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
