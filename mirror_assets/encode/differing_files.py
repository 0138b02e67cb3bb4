"""Encodes the changes between two table versions from the files that differ, without a change data feed.

The changes are in the files that only one of the versions has. Of a file that both have with different deletion
vectors, only the rows that one vector hides and the other shows are read. Most rows of a rewritten file are unchanged,
so the files are read twice: the first scan pairs old and new rows by key and compares their stamps, the second reads
the values of the keys that differ. Delta's private reader opens the files; it applies deletion vectors, column mapping
and partition values.

A row is unchanged if both versions have its key with the same stamp. With row tracking, the stamp is the row's id,
which rewrites preserve, and the version that last changed the row; otherwise, a hash of the landed values of 128 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from mirror_assets.encode.columns import HelperNames, described, landed_value, row_id
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.net import NetSlice
from mirror_assets.encode.private.table_version import FileRows, TableVersion, require_own_reader
from mirror_assets.encode.readable import readable
from mirror_assets.encode.row_hash import row_hash
from mirror_assets.encode.spark_errors import DuplicateKey, spark_errors
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.row_values import shown_key
from mirror_assets.source.projection import ALL_ROWS, Projection
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.schema import LandedColumn
from mirror_assets.source.sql_names import quoted

_SAMPLES = 5
# Bytes of rewritten files of which one task pairs the keys.
_BIN_BYTES = 64 << 20
# At most this many keys that differ are broadcast to the second scan, which takes some hundred megabytes. For more, its
# rows are shuffled by key.
_BROADCAST_KEYS = 2_000_000


@dataclass(frozen=True)
class VersionRange:
    """The commits after version `before` up to `last` of the table at `uri`; `by_values`: without row tracking.

    `projection` selects the landing rows.
    """

    uri: str
    before: int
    last: int
    by_values: bool = False
    projection: Projection = ALL_ROWS


def encode_differences(
    spark: SparkSession,
    range_: VersionRange,
    slice_: NetSlice,
    folder: str,
    compression: str,
    footer: Mapping[str, str],
) -> ReadRows:
    """Write one change for each key that differs into `folder`; return their counts by change type.

    Raises DuplicateKey, with sample keys, when a version has two rows of one key in these files; session_unfit without
    Delta's private reader; and the errors of `spark_error`.
    """
    place = f"{slice_.table}, comparing versions {range_.before} and {range_.last} of {range_.uri}"
    with spark_errors(place):
        differing = DifferingRows.read(spark, range_, slice_)
        changed = differing.changed_keys().persist()
        try:
            counts = changed.agg(*differing.counts()).collect()[0]
            if counts["repeats"]:
                raise DuplicateKey(slice_.table, counts["repeats"], differing.repeated_keys(changed))
            read = ReadRows.of(counts.asDict())
            rows = differing.landed_rows(changed, footer, is_few=read.changes <= _BROADCAST_KEYS)
            write_parts(rows, folder, compression)
            return read
        finally:
            changed.unpersist()


@dataclass(frozen=True)
class DifferingRows:
    """The rows of the files that only one of two versions has: `old` of the first version, `new` of the last one."""

    range: VersionRange
    slice: NetSlice
    old: FileRows
    new: FileRows

    @classmethod
    def read(cls, spark: SparkSession, range_: VersionRange, slice_: NetSlice) -> DifferingRows:
        """Find the files that differ. Raises session_unfit, and Spark's error if a version can't be read."""
        require_own_reader(spark, f"`changes: {'files' if range_.by_values else 'row_tracking'}`")
        before, last = (TableVersion.opened(spark, range_.uri, version) for version in (range_.before, range_.last))
        return cls(range_, slice_, *before.differences(last, range_.projection))

    def changed_keys(self) -> DataFrame:
        """Return the keys that differ, with the number of their rows in both versions; shuffles keys and stamps."""
        names, bins = self._names, max(self.slice.parts, -(-(self.old.bytes + self.new.bytes) // _BIN_BYTES))
        rows = self._stamped(self.old.frame, is_new=False).union(self._stamped(self.new.frame, is_new=True))
        is_same = [F.min(stamp) == F.max(stamp) for stamp in (names.stamp_a, names.stamp_b)]
        paired = (
            rows.repartition(bins, *self._keys)
            .groupBy(*self._keys)
            .agg(
                F.count_if(~F.col(names.is_new)).alias(names.old_rows),
                F.count_if(F.col(names.is_new)).alias(names.new_rows),
                F.coalesce(is_same[0] & is_same[1], F.lit(col=False)).alias(names.is_same),
            )
        )
        return paired.where(~((self._old_rows == 1) & (self._new_rows == 1) & F.col(names.is_same)))

    def counts(self) -> list[Column]:
        """Return the aggregates that count changed keys by change type, and rows that repeat a key."""
        is_old, is_new = self._old_rows > 0, self._new_rows > 0
        more = F.greatest(self._old_rows - 1, F.lit(0)) + F.greatest(self._new_rows - 1, F.lit(0))
        both = F.count_if(is_old & is_new)
        return [
            F.coalesce(F.sum(more), F.lit(0)).alias("repeats"),
            F.count_if(is_new & ~is_old).alias("insert"),
            both.alias("update_preimage"),
            both.alias("update_postimage"),
            F.count_if(is_old & ~is_new).alias("delete"),
        ]

    def repeated_keys(self, changed: DataFrame) -> tuple[str, ...]:
        """Return some keys of which a version has several rows, as text."""

        def shown(row: Row) -> str:
            key = {name: row[alias] for name, alias in zip(self.slice.keys, self._keys, strict=True)}
            version = self.range.last if row[self._names.new_rows] > 1 else self.range.before
            return f"{shown_key(key)} at version {version}"

        found = changed.where((self._old_rows > 1) | (self._new_rows > 1)).limit(_SAMPLES)
        return tuple(shown(row) for row in readable(found).collect())

    def landed_rows(self, changed: DataFrame, footer: Mapping[str, str], *, is_few: bool) -> DataFrame:
        """Return the landed rows of the changed keys, one Spark partition per part; values move once at most."""
        parts, columns, by_key = self.slice.parts, self.slice.columns, [F.col(key) for key in self._keys]
        new = self.new.frame.select(*(_source(self.new.frame, column).alias(column.name) for column in columns))
        is_its = [
            F.col(key).eqNullSafe(F.col(quoted(name))) for name, key in zip(self.slice.keys, self._keys, strict=True)
        ]
        landing = {column.name: landed_value(column, new) for column in columns}
        if is_few:
            found = new.join(F.broadcast(changed.where(self._new_rows > 0)), is_its)
            gone = changed.where(self._new_rows == 0).select(*_nulls(new), *changed.columns)
            rows = found.union(gone).repartition(parts, *by_key)
        else:
            shuffled = new.repartition(parts, *(F.col(quoted(key)) for key in self.slice.keys))
            # By hash: a sort of all these rows takes longer, and spills.
            rows = changed.repartition(parts, *by_key).hint("shuffle_hash").join(shuffled, is_its, "left")
        landing |= dict(zip(self.slice.keys, by_key, strict=True))  # a deleted row has its key alone
        update = F.when(self._old_rows > 0, int(Marker.UPDATE)).otherwise(int(Marker.INSERT))
        marker = F.when(self._new_rows > 0, update).otherwise(int(Marker.DELETE)).cast("int")
        landed = rows.select(*(value.alias(name) for name, value in landing.items()), marker.alias(ROW_MARKER))
        return landed.select(*described(columns, footer), ROW_MARKER)

    def _stamped(self, rows: DataFrame, *, is_new: bool) -> DataFrame:
        columns = {column.name: column for column in self.slice.columns}
        if self.range.by_values:
            stamp = value_stamp(rows, [column for name, column in columns.items() if name not in self.slice.keys])
        else:
            stamp = row_id(rows), rows.metadataColumn("_metadata").getField("row_commit_version")
        return rows.select(
            *(_source(rows, columns[name]).alias(key) for name, key in zip(self.slice.keys, self._keys, strict=True)),
            F.lit(is_new).alias(self._names.is_new),
            stamp[0].alias(self._names.stamp_a),
            stamp[1].alias(self._names.stamp_b),
        )

    @property
    def _names(self) -> HelperNames:
        return HelperNames.beside(self.slice.columns)

    @property
    def _keys(self) -> list[str]:
        """The names of the key columns beside the landed ones."""
        return [f"{self._names.key}{at}" for at in range(len(self.slice.keys))]

    @property
    def _old_rows(self) -> Column:
        return F.col(self._names.old_rows)

    @property
    def _new_rows(self) -> Column:
        return F.col(self._names.new_rows)


def value_stamp(rows: DataFrame, columns: Sequence[LandedColumn]) -> tuple[Column, Column]:
    """Return two hashes of the columns' landed values; both are equal only if all values are.

    A column that `rows` doesn't have is NULL; one that is narrower in an older version has the landed type.
    """
    values = []
    for column in columns:
        value = landed_value(column, rows) if column.name in rows.columns else F.lit(None)
        values.append((value.cast(column.type), DataType.fromDDL(column.type)))
    return row_hash(values, salt=1), row_hash(values, salt=2)


def _source(rows: DataFrame, column: LandedColumn) -> Column:
    """Return the source's column; for the mirror's row id column, the row tracking id."""
    return row_id(rows) if column.is_row_id else F.col(quoted(column.name))


def _nulls(rows: DataFrame) -> list[Column]:
    return [F.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema]
