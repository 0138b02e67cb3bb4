"""Encodes appended rows: all inserts, without a marker column (Fabric's fast path), a key or a shuffle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.delta.columns import inserted_row
from mirror_assets.delta.feed_columns import CHANGE_TYPE
from mirror_assets.delta.reader import read_appends
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.delta.write import write_parts
from mirror_assets.source.errors import RowsChanged
from mirror_assets.source.schema import LandedColumn


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
