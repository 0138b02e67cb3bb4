"""Changes between two versions by row tracking: from the files that only one of them has (reference `delta` §3).

Of a file with another deletion vector, the rows count that only one of them shows. A row keeps its id through rewrites,
and its commit version until it changes: a row that both versions have with the same commit version is unchanged.
RESTORE sets commit versions back, so a later one alone does not tell what changed. Delta's own reader opens the files:
deletion vectors, column mapping and partition values are its business.
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
    """The changes behind version `before` up to `last` of the table at `uri`; `restored`: one commit is a RESTORE."""

    uri: str
    before: int
    last: int
    restored: bool


@dataclass(frozen=True)
class TrackedNames:
    """Names of what is told of a row beside its columns: its id, its commit version, and whether it came bare."""

    row_id: str
    commit: str
    bare: str

    @classmethod
    def beside(cls, columns: Sequence[LandedColumn]) -> TrackedNames:
        """Names that differ from all of these."""
        mark = unused_prefix(columns)
        return cls(f"{mark}row_id", f"{mark}row_commit_version", f"{mark}bare")


def read_tracked(
    spark: SparkSession,
    range_: TrackedRange,
    columns: Sequence[LandedColumn],
    keys: Sequence[str],
    names: TrackedNames,
) -> FileRows:
    """Old and new rows of the differing files in a feed's shape, beside their `names`; old ones have only `keys`.

    New rows that can't have changed are bare: they have only `keys`, too. Raises SessionUnfit, and what Spark raises
    when a version can't be read any more.
    """
    require_own_reader(spark, "`changes: row_tracking`")
    before, last = (TableVersion.opened(spark, range_.uri, version) for version in (range_.before, range_.last))
    gone, come = before.rows_not_in(last), last.rows_not_in(before)
    old, new = gone.frame, come.frame
    bare = F.lit(col=False) if range_.restored else _commit(new) <= range_.before
    old_rows = _rows(old, _absent(old, new, columns, keys), names, "delete", range_.before, F.lit(col=True))
    new_rows = _rows(new, _unless(bare, new, columns, keys), names, "insert", range_.last, bare)
    return FileRows(old_rows.union(new_rows), gone.bytes + come.bytes)


def _rows(
    frame: DataFrame, values: Sequence[Column], names: TrackedNames, change: str, version: int, bare: Column
) -> DataFrame:
    return frame.select(
        *values,
        F.lit(change).alias(CHANGE_TYPE),
        F.lit(version).cast("bigint").alias(COMMIT_VERSION),
        row_id(frame).alias(names.row_id),
        _commit(frame).alias(names.commit),
        bare.alias(names.bare),
    )


def _absent(old: DataFrame, new: DataFrame, columns: Sequence[LandedColumn], keys: Sequence[str]) -> list[Column]:
    """The keys of the old rows, and NULL for every other column of the new ones."""
    return [_source(old, column) if column.name in keys else _null(new, column.name) for column in columns]


def _null(frame: DataFrame, name: str) -> Column:
    return F.lit(None).cast(frame.schema[name].dataType).alias(name)


def _unless(bare: Column, new: DataFrame, columns: Sequence[LandedColumn], keys: Sequence[str]) -> list[Column]:
    values = {column.name: _source(new, column) for column in columns}
    return [value if name in keys else F.when(~bare, value).alias(name) for name, value in values.items()]


def _source(frame: DataFrame, column: LandedColumn) -> Column:
    """The source's column, or the row id where that is a column of the mirror."""
    return (row_id(frame) if column.is_row_id else F.col(quoted(column.name))).alias(column.name)


def _commit(frame: DataFrame) -> Column:
    return frame.metadataColumn("_metadata").getField("row_commit_version")
