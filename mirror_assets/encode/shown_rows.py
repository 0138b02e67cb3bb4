"""Change rows for people: net changes between two versions in the columns of the change feed, and rows as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from mirror_assets.encode.encode_differences import DifferencesSlice, DifferingRows
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.source.schema import LandedColumn
from mirror_assets.spark_names import quoted


def net_changes(
    spark: SparkSession, slice_: DifferencesSlice, columns: Sequence[LandedColumn], time_ms: int
) -> DataFrame:
    """Return the net changes between two versions, one per key, with the columns that the change feed has.

    `time_ms` is the time of the last version. Of a deleted row only the keys have values.
    """
    differing = DifferingRows.read(spark, slice_)
    net = differing.landed_rows(differing.changed_keys(), {}, 1, is_few=False)
    marker = F.col(ROW_MARKER)
    change = F.when(marker == int(Marker.INSERT), "insert").when(marker == int(Marker.DELETE), "delete")
    return net.select(
        *(F.col(quoted(column.name)) for column in columns),
        change.otherwise("update_postimage").alias(CHANGE_TYPE),
        F.lit(slice_.scans.last_version).cast("bigint").alias(COMMIT_VERSION),
        F.timestamp_millis(F.lit(time_ms)).alias(COMMIT_TIMESTAMP),
    )


def json_rows(changes: DataFrame, limit: int) -> tuple[str, ...]:
    """Return up to `limit` change rows by version, as JSON objects that begin with Delta's columns."""
    names = [COMMIT_VERSION, COMMIT_TIMESTAMP, CHANGE_TYPE]
    names += [name for name in changes.columns if name not in names]
    return as_json(changes.orderBy(COMMIT_VERSION).limit(limit).select(*map(quoted, names)))


def as_json(rows: DataFrame) -> tuple[str, ...]:
    """Return the rows as JSON objects with all columns, also those that are NULL."""
    row = F.to_json(F.struct(*map(quoted, rows.columns)), {"ignoreNullFields": "false"})
    return tuple(found[0] for found in rows.select(row).collect())
