"""Reads the changes between two table versions by row tracking, without a change data feed (reference `delta` §3).

The changes are in the files that only one of the versions has. Of a file that both have with different deletion
vectors, only the rows that one vector hides and the other shows are read. A row keeps its row id through rewrites, and
its row commit version until it changes: a row with the same commit version in both is unchanged. RESTORE brings back
old commit versions, so after it an old commit version doesn't prove that a row is unchanged. Delta's private reader
opens the files; it applies deletion vectors, column mapping and partition values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_VERSION, quoted, row_id, unused_prefix
from mirror_assets.encode.private.table_version import FileRows, TableVersion, require_own_reader
from mirror_assets.source.schema import LandedColumn


@dataclass(frozen=True)
class TrackedRange:
    """The commits after version `before` up to `last` of the table at `uri`; `restored`: a RESTORE is among them."""

    uri: str
    before: int
    last: int
    restored: bool


@dataclass(frozen=True)
class TrackedNames:
    """Names of the helper columns: the row id, the row commit version, and `keys_only`.

    `keys_only` is true for a row that was read with its keys only, because it can't have changed.
    """

    row_id: str
    commit: str
    keys_only: str

    @classmethod
    def beside(cls, columns: Sequence[LandedColumn]) -> TrackedNames:
        """Return names that differ from all of these columns' names, ignoring case."""
        mark = unused_prefix(columns)
        return cls(f"{mark}row_id", f"{mark}row_commit_version", f"{mark}keys_only")


def read_tracked(
    spark: SparkSession,
    range_: TrackedRange,
    columns: Sequence[LandedColumn],
    keys: Sequence[str],
    names: TrackedNames,
) -> FileRows:
    """Return the rows of the differing files as change feed rows: deletes from `before`, inserts from `last`.

    Each has the helper columns `names`. Deletes, and inserts that can't have changed (`keys_only`), have NULL in all
    columns but `keys`. Raises session_unfit without Delta's private reader, and Spark's error if a version can't be
    read.
    """
    require_own_reader(spark, "`changes: row_tracking`")
    before, last = (TableVersion.opened(spark, range_.uri, version) for version in (range_.before, range_.last))
    removed, added = before.rows_not_in(last), last.rows_not_in(before)
    old, new = removed.frame, added.frame
    keys_only = F.lit(col=False) if range_.restored else _row_commit_version(new) <= range_.before
    old_rows = _rows(old, _keys_of_old(old, new, columns, keys), names, "delete", range_.before, F.lit(col=True))
    new_rows = _rows(new, _values_unless(keys_only, new, columns, keys), names, "insert", range_.last, keys_only)
    return FileRows(old_rows.union(new_rows), removed.bytes + added.bytes)


def _rows(
    frame: DataFrame, values: Sequence[Column], names: TrackedNames, change: str, version: int, keys_only: Column
) -> DataFrame:
    return frame.select(
        *values,
        F.lit(change).alias(CHANGE_TYPE),
        F.lit(version).cast("bigint").alias(COMMIT_VERSION),
        row_id(frame).alias(names.row_id),
        _row_commit_version(frame).alias(names.commit),
        keys_only.alias(names.keys_only),
    )


def _keys_of_old(old: DataFrame, new: DataFrame, columns: Sequence[LandedColumn], keys: Sequence[str]) -> list[Column]:
    """Select the keys of the old rows, and NULL in the new version's type for every other column."""
    return [_source(old, column) if column.name in keys else _null(new, column.name) for column in columns]


def _null(frame: DataFrame, name: str) -> Column:
    return F.lit(None).cast(frame.schema[name].dataType).alias(name)


def _values_unless(
    keys_only: Column, new: DataFrame, columns: Sequence[LandedColumn], keys: Sequence[str]
) -> list[Column]:
    values = {column.name: _source(new, column) for column in columns}
    return [value if name in keys else F.when(~keys_only, value).alias(name) for name, value in values.items()]


def _source(frame: DataFrame, column: LandedColumn) -> Column:
    """Return the source's column; for the mirror's row id column, the row tracking id."""
    return (row_id(frame) if column.is_row_id else F.col(quoted(column.name))).alias(column.name)


def _row_commit_version(frame: DataFrame) -> Column:
    return frame.metadataColumn("_metadata").getField("row_commit_version")
