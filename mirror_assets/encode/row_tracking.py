"""Reads the changes between two table versions by row tracking, without a change data feed (reference `delta` §3).

The changes are in the files that only one of the versions has. Of a file that both have with different deletion
vectors, only the rows that one vector hides and the other shows are read. A row keeps its row id through rewrites, and
its row commit version until it changes: a row with the same commit version in both is unchanged. RESTORE brings back
old commit versions, so after it an old commit version doesn't prove that a row is unchanged. Delta's private reader
opens the files; it applies deletion vectors, column mapping and partition values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_VERSION, HelperNames, quoted, row_id
from mirror_assets.encode.net import NetSlice
from mirror_assets.encode.private.table_version import TableVersion, require_own_reader
from mirror_assets.source.schema import LandedColumn


@dataclass(frozen=True)
class TrackedRange:
    """The commits after version `before` up to `last` of the table at `uri`; `restored`: a RESTORE is among them."""

    uri: str
    before: int
    last: int
    restored: bool


def read_tracked(spark: SparkSession, range_: TrackedRange, slice_: NetSlice) -> tuple[DataFrame, NetSlice]:
    """Return the rows of the differing files as change feed rows, and the slice with their helper columns and size.

    Rows of `before` are deletes, rows of `last` inserts. The stamp is a row's id and its row commit version. Deletes,
    and inserts that can't have changed (`keys_only`), have NULL in all columns but the keys. Raises session_unfit
    without Delta's private reader, and Spark's error if a version can't be read.
    """
    require_own_reader(spark, "`changes: row_tracking`")
    before, last = (TableVersion.opened(spark, range_.uri, version) for version in (range_.before, range_.last))
    removed, added = before.rows_not_in(last), last.rows_not_in(before)
    old, new = removed.frame, added.frame
    keys_only = F.lit(col=False) if range_.restored else _row_commit_version(new) <= range_.before
    old_values, new_values = list[Column](), list[Column]()
    for column in slice_.columns:
        if column.name in slice_.keys:
            old_values.append(_source(old, column))
            new_values.append(_source(new, column))
        else:
            null = F.lit(None).cast(new.schema[column.name].dataType)
            old_values.append(null.alias(column.name))
            new_values.append(F.when(~keys_only, _source(new, column)).alias(column.name))
    names = HelperNames.beside(slice_.columns)
    old_rows = _rows(old, old_values, names, "delete", range_.before, F.lit(col=True))
    new_rows = _rows(new, new_values, names, "insert", range_.last, keys_only)
    stamp = (names.row_id, names.row_commit_version)
    read = replace(slice_, stamp=stamp, keys_only=names.keys_only, rewritten_bytes=removed.bytes + added.bytes)
    return old_rows.union(new_rows), read


def _rows(
    frame: DataFrame, values: Sequence[Column], names: HelperNames, change: str, version: int, keys_only: Column
) -> DataFrame:
    return frame.select(
        *values,
        F.lit(change).alias(CHANGE_TYPE),
        F.lit(version).cast("bigint").alias(COMMIT_VERSION),
        row_id(frame).alias(names.row_id),
        _row_commit_version(frame).alias(names.row_commit_version),
        keys_only.alias(names.keys_only),
    )


def _source(frame: DataFrame, column: LandedColumn) -> Column:
    """Return the source's column; for the mirror's row id column, the row tracking id."""
    return (row_id(frame) if column.is_row_id else F.col(quoted(column.name))).alias(column.name)


def _row_commit_version(frame: DataFrame) -> Column:
    return frame.metadataColumn("_metadata").getField("row_commit_version")
