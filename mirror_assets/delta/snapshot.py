"""Encodes a table, or a chunk of it, as of one version: all inserts, without a marker column (Fabric's fast path)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from mirror_assets.delta.chunks import FileChunk
from mirror_assets.delta.columns import LandedColumn, inserted_row
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.delta.versions import read_files, read_version
from mirror_assets.delta.write import write_parts


@dataclass(frozen=True)
class SnapshotSlice:
    """What to encode: the table at `uri` as of `version`, or a chunk of it, in at most `parts` files."""

    uri: str
    version: int
    columns: tuple[LandedColumn, ...]
    parts: int
    chunk: FileChunk | None = None


def encode_snapshot(
    spark: SparkSession, slice_: SnapshotSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> int:
    """Write the table's rows into `folder`; the number of rows. An empty table gives one typed file without rows.

    Raises DataFileMissing, SparkOutOfSpace and SparkFailed, and SourceUnreadable as `read_files` does.
    """
    count = Observation()
    with spark_errors(folder):
        rows = snapshot_rows(spark, slice_, footer).observe(count, F.count(F.lit(1)).alias("rows"))
        write_parts(rows, folder, compression)
        return int(count.get["rows"])


def snapshot_rows(spark: SparkSession, slice_: SnapshotSlice, footer: Mapping[str, str]) -> DataFrame:
    """The landed rows; fewer partitions than the scan has are merged without a shuffle."""
    source = (
        read_files(spark, slice_.uri, slice_.version, slice_.chunk)
        if slice_.chunk
        else read_version(spark, slice_.uri, slice_.version)
    )
    return source.select(*inserted_row(source, slice_.columns, footer)).coalesce(slice_.parts)
