"""Encodes inserts: appended rows, snapshots, and the file without rows that begins an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType

from mirror_assets.column_types import LONG_BYTES, LongValues
from mirror_assets.encode.columns import described, inserted_row, projected
from mirror_assets.encode.counted import Counted, number_of
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.source.commits import ReadRows
from mirror_assets.source.errors import ROWS_CHANGED
from mirror_assets.source.scan import RowKind, Scan
from mirror_assets.source.schema import ALL_ROWS, LandedColumn, Projection
from mirror_assets.spark_api import observed
from mirror_assets.spark_names import quoted

_ROW_GROUP_BYTES = 256 << 20


def write_parts(frame: DataFrame, folder: str, most_rows: int = 0) -> dict[str, int]:
    """Write each Spark partition of `frame` as one Parquet file into the new `folder`; return its long values.

    These are the text and binary columns that have one of more than LONG_BYTES, each with its largest length in bytes.
    `most_rows` above 0 splits a partition into files of at most that many rows; their names sort in writing order.
    Raises what Spark raises.
    """
    seen, names = Observation(), [one.name for one in frame.schema if isinstance(one.dataType, StringType | BinaryType)]
    write_files(frame.observe(seen, *longest_bytes(names)) if names else frame, folder, most_rows)
    return long_values(names, observed(seen) if names else {})


def write_files(frame: DataFrame, folder: str, most_rows: int = 0) -> None:
    """Write the files of `write_parts`, without counting their long values. Raises what Spark raises."""
    (
        frame.write.option("compression", "zstd")
        .option("maxRecordsPerFile", most_rows)
        .option("parquet.block.size", _ROW_GROUP_BYTES)
        # Dictionaries cost a fifth of the encoder's CPU time; a landing file is read only once (docs/performance.md).
        .option("parquet.enable.dictionary", "false")
        .option("mapreduce.fileoutputcommitter.algorithm.version", 2)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        .parquet(folder)
    )


def longest_bytes(names: Sequence[str], where: Column | None = None) -> list[Column]:
    """Return the aggregates that `long_values` reads: the largest length in bytes of each column, of these rows."""
    lengths = (F.octet_length(quoted(name)) for name in names)
    return [
        F.max(length if where is None else F.when(where, length)).alias(f"bytes_{at}")
        for at, length in enumerate(lengths)
    ]


def long_values(names: Sequence[str], counts: Mapping[str, int | None]) -> dict[str, int]:
    """Return the columns that have a value of more than LONG_BYTES, each with its largest length in bytes."""
    found = {name: counts[f"bytes_{at}"] or 0 for at, name in enumerate(names)}
    return {name: count for name, count in found.items() if count > LONG_BYTES}


@dataclass(frozen=True)
class InsertsSlice:
    """Inserts to encode: all rows of a scan, of a version or of appends.

    At most `parts` Spark tasks write files of at most `target_rows` rows each. `version` is the slice's last one.
    """

    table: str
    scan: Scan
    version: int
    columns: tuple[LandedColumn, ...]
    parts: int
    target_rows: int
    projection: Projection = ALL_ROWS


class InsertsRead(NamedTuple):
    """The rows that were read, if there is a condition: else the parts have all of them; and the long values."""

    counted: Counted | None
    long_values: LongValues


def encode_inserts(spark: SparkSession, slice_: InsertsSlice, folder: str, footer: Mapping[str, str]) -> InsertsRead:
    """Write the rows into `folder`; no rows become one file without rows.

    Raises ROWS_CHANGED when a commit of appends removes rows, and the errors of `spark_error`.
    """
    removing = min((file.version for file in slice_.scan.files if file.kind is not RowKind.INSERT), default=None)
    if removing is not None:
        raise ROWS_CHANGED(table=slice_.table, version=removing, why=f"version {removing} removes rows")
    with spark_errors(f"{slice_.table}, encoding version {slice_.version} of {slice_.scan.uri} into {folder}"):
        is_keyless = any(column.is_row_id for column in slice_.columns)
        read = read_scan(spark, slice_.scan, row_ids=is_keyless)
        source = projected(read, slice_.projection)
        # Spark merges the scan's partitions without a shuffle: the order of inserts is free.
        rows = source.select(*inserted_row(source, slice_.columns, footer)).coalesce(slice_.parts)
        long_values = write_parts(rows, folder, slice_.target_rows)
        if not slice_.projection.where:
            return InsertsRead(None, long_values)
        # Read again, not observed during the write: a task that Spark runs twice would count twice, and these counts
        # are the proof that no row is lost. It takes a tenth longer (3 million rows, 2026-11-29).
        counts = (ReadRows(insert=number_of(rows)) for rows in (read, source))
        return InsertsRead(Counted.of_commit(slice_.version, *counts), long_values)


def encode_no_rows(
    spark: SparkSession, columns: Sequence[LandedColumn], folder: str, footer: Mapping[str, str]
) -> None:
    """Write one file with these columns and no rows into `folder`, without a marker column and without reading a table.

    Raises the errors of `spark_error`.
    """
    typed = [F.lit(None).cast(column.type).alias(column.name) for column in columns]
    with spark_errors(folder):
        no_rows = spark.range(0, 0, 1, 1).select(*typed)
        write_parts(no_rows.select(*described(columns, footer)), folder)
