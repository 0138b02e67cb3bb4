"""Encodes the net changes of a slice: at most one per key, without the states in between (docs/encoding.md).

`encode_net` reads change rows. A key whose first row is an old one existed before the slice; a key whose last row is a
new one exists after it. A key that existed before and exists after lands as UPDATE with the last row, one that only
existed before as DELETE, one that only exists after as INSERT. All others don't land.

`encode_differences` compares two table versions by the files that differ, without a change data feed. The changes are
in the files that only one of the versions has. Of a file that both have with different deletion vectors, only the rows
that one vector hides and the other shows are read. Most rows of a rewritten file are unchanged, so the files are read
twice: the first read pairs old and new rows by key and compares their stamps, the second reads the values of the keys
that differ.

A row is unchanged if both versions have its key with the same stamp. With row tracking, the stamp is the row's id,
which rewrites preserve, and the version that last changed the row; otherwise, a hash of the landed values of 128 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.encode.changes import repeated_key_samples
from mirror_assets.encode.columns import (
    COMMIT_VERSION,
    ROW_ID,
    ROW_VERSION,
    HelperNames,
    described,
    is_new_row,
    landed_value,
    projected,
    value_stamp,
    values_where,
)
from mirror_assets.encode.counted import Counted, ObservedRows, number_of
from mirror_assets.encode.errors import duplicate_key
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.rows_of_keys import BROADCAST_KEYS, rows_of_keys
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.redaction import shown_key
from mirror_assets.source.batching import parts_for
from mirror_assets.source.commits import ReadRows
from mirror_assets.source.scan import DifferingScans
from mirror_assets.source.schema import ALL_ROWS, LandedColumn, Projection
from mirror_assets.spark_api import observed
from mirror_assets.spark_messages import readable
from mirror_assets.spark_names import quoted

_OLD, _NEW = "old", "new"
_SAMPLES = 5
# Bytes of rewritten files of which one task pairs the keys.
_BIN_BYTES = 64 << 20
_REPEATS = "repeats"


@dataclass(frozen=True)
class NetSlice:
    """Net changes to encode: the keys and columns of the change rows, and the number of parts.

    Where the changes are counted before they are written, there are fewer parts, of `part_rows` changes each.
    """

    table: str
    keys: tuple[str, ...]
    columns: tuple[LandedColumn, ...]
    parts: int
    part_rows: int = 0


def encode_net(changes: ObservedRows, slice_: NetSlice, folder: str, footer: Mapping[str, str]) -> Counted:
    """Write the net changes into `folder`, one file per part that has rows; return the counts of the rows read.

    Raises DUPLICATE_KEY, with sample keys, when a key has two old or two new rows in one commit, and the errors of
    `spark_error`.
    """
    repeats = Observation()
    with spark_errors(f"{slice_.table}, encoding into {folder}"):
        long_values = write_parts(net_rows(changes.rows, slice_, footer, repeats), folder)
        if found := observed(repeats)[_REPEATS]:
            raise duplicate_key(slice_.table, found, repeated_key_samples(changes.rows, slice_.keys))
        return replace(changes.counted(), long_values=long_values)


def net_rows(
    changes: DataFrame, slice_: NetSlice, footer: Mapping[str, str], counted: Observation | None = None
) -> DataFrame:
    """Return the landed rows, one Spark partition per part; `counted` counts the rows that repeat a key."""
    ours = HelperNames.beside(slice_.columns)
    keys = [quoted(key) for key in slice_.keys]
    window = Window.partitionBy(*keys).orderBy(COMMIT_VERSION, ours.is_new)
    is_new, moment = is_new_row(), F.struct(COMMIT_VERSION, ours.is_new)
    values = values_where(is_new, changes, slice_.columns, slice_.keys)
    rows = (
        changes.select(COMMIT_VERSION, is_new.alias(ours.is_new), *values)
        .repartition(slice_.parts, *keys)
        .withColumn(ours.repeats, F.coalesce(F.lag(moment).over(window) == moment, F.lit(col=False)))
        .withColumn(ours.is_last, F.lead(ours.is_new).over(window).isNull())
        .withColumn(ours.was_there, ~F.first(ours.is_new).over(window))
    )
    new, there = F.col(ours.is_new), F.col(ours.was_there)
    lands = F.col(ours.is_last) & (new | there)
    if counted is not None:
        rows = rows.observe(counted, F.count_if(ours.repeats).alias(_REPEATS))
    update = F.when(there, int(Marker.UPDATE)).otherwise(int(Marker.INSERT))
    marker = F.when(new, update).otherwise(int(Marker.DELETE)).cast("int")
    return rows.where(lands).select(*described(slice_.columns, footer), marker.alias(ROW_MARKER))


@dataclass(frozen=True)
class DifferencesSlice:
    """The rows that differ between two versions, to encode as net changes; `by_values`: without row tracking.

    `projection` selects the landing rows.
    """

    scans: DifferingScans
    net: NetSlice
    by_values: bool = False
    projection: Projection = ALL_ROWS


def encode_differences(
    spark: SparkSession, slice_: DifferencesSlice, folder: str, footer: Mapping[str, str]
) -> Counted:
    """Write one change for each key that differs into `folder`; return the counts of the rows read.

    Raises DUPLICATE_KEY, with sample keys, when a version has two rows of one key in these files, and the errors of
    `spark_error`.
    """
    table, scans = slice_.net.table, slice_.scans
    place = f"{table}, comparing versions {scans.before_version} and {scans.last_version} of {scans.last.uri}"
    with spark_errors(place):
        differing = DifferingRows.read(spark, slice_)
        seen = Observation()
        # In files: cached in memory, keys would take it from the sort of their rows.
        changed = differing.changed_keys(seen).persist(StorageLevel.DISK_ONLY)
        try:
            counts = changed.agg(*differing.counts()).collect()[0]
            if counts["repeats"]:
                raise duplicate_key(table, counts["repeats"], differing.repeated_keys(changed))
            parts, part_rows = slice_.net.parts, slice_.net.part_rows
            parts = min(parts, parts_for(counts["keys"], part_rows)) if part_rows else parts
            rows = differing.landed_rows(changed, footer, parts, is_few=counts["keys"] <= BROADCAST_KEYS)
            long_values = write_parts(rows, folder)
            return replace(differing.counted(seen), long_values=long_values, changed_keys=counts["keys"])
        finally:
            changed.unpersist()


@dataclass(frozen=True)
class DifferingRows:
    """The landing rows of the files that only one of two versions has: `old` of the first version, `new` of the last.

    `all_old` and `all_new` also have those that don't meet the condition.
    """

    range: DifferencesSlice
    all_old: DataFrame
    all_new: DataFrame
    old: DataFrame
    new: DataFrame

    @classmethod
    def read(cls, spark: SparkSession, slice_: DifferencesSlice) -> DifferingRows:
        """Return the rows of both scans."""
        is_tracked = not slice_.by_values
        both = [read_scan(spark, scan, row_ids=is_tracked) for scan in (slice_.scans.before, slice_.scans.last)]
        return cls(slice_, *both, *(projected(rows, slice_.projection) for rows in both))

    @property
    def slice(self) -> NetSlice:
        """Keys, columns and parts."""
        return self.range.net

    def counted(self, seen: Observation) -> Counted:
        """Return the counts of the rows read, after the first read."""
        counts = observed(seen)
        landing = scanned = ReadRows(insert=counts[_NEW], delete=counts[_OLD])
        if self.range.projection.where:
            scanned = ReadRows(insert=number_of(self.all_new), delete=number_of(self.all_old))
        return Counted.of_commit(self.range.scans.last_version, scanned, landing)

    def changed_keys(self, seen: Observation | None = None) -> DataFrame:
        """Return the keys that differ, with the number of their rows in both versions; shuffles keys and stamps.

        `seen` counts the rows of all keys.
        """
        names, scans = self._names, self.range.scans
        bins = max(self.slice.parts, -(-(scans.before.whole_bytes + scans.last.whole_bytes) // _BIN_BYTES))
        rows = self._stamped(self.old, is_new=False).union(self._stamped(self.new, is_new=True))
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
        if seen is not None:
            sums = {_OLD: names.old_rows, _NEW: names.new_rows}
            paired = paired.observe(
                seen, *(F.coalesce(F.sum(rows), F.lit(0)).alias(name) for name, rows in sums.items())
            )
        return paired.where(~((self._old_rows == 1) & (self._new_rows == 1) & F.col(names.is_same)))

    def counts(self) -> list[Column]:
        """Return the aggregates that count changed keys, and rows that repeat one."""
        more = F.greatest(self._old_rows - 1, F.lit(0)) + F.greatest(self._new_rows - 1, F.lit(0))
        return [F.coalesce(F.sum(more), F.lit(0)).alias("repeats"), F.count(F.lit(1)).alias("keys")]

    def repeated_keys(self, changed: DataFrame) -> tuple[str, ...]:
        """Return some keys of which a version has several rows, as text."""

        def shown(row: Row) -> str:
            key = {name: row[alias] for name, alias in zip(self.slice.keys, self._keys, strict=True)}
            scans = self.range.scans
            version = scans.last_version if row[self._names.new_rows] > 1 else scans.before_version
            return f"{shown_key(key)} at version {version}"

        found = changed.where((self._old_rows > 1) | (self._new_rows > 1)).limit(_SAMPLES)
        return tuple(shown(row) for row in readable(found).collect())

    def landed_rows(self, changed: DataFrame, footer: Mapping[str, str], parts: int, *, is_few: bool) -> DataFrame:
        """Return the landed rows of the changed keys, one Spark partition per part; values move once at most."""
        columns, names = self.slice.columns, self._names
        new = self.new.select(*(_source(column).alias(column.name) for column in columns))
        landing = {column.name: landed_value(column, new) for column in columns}
        keys, has_row = dict(zip(self.slice.keys, self._keys, strict=True)), self._new_rows > 0
        rows = rows_of_keys(changed, has_row, new, keys, names, parts, is_few=is_few)
        landing |= {name: F.col(key) for name, key in keys.items()}  # a deleted row has its key alone
        lost = F.raise_error(F.lit("a row that differs was read once, and not again")).cast("int")
        update = F.when(self._old_rows > 0, int(Marker.UPDATE)).otherwise(int(Marker.INSERT))
        new_row = F.when(F.col(names.is_found).isNull(), lost).otherwise(update)
        marker = F.when(has_row, new_row).otherwise(int(Marker.DELETE)).cast("int")
        landed = rows.select(*(value.alias(name) for name, value in landing.items()), marker.alias(ROW_MARKER))
        return landed.select(*described(columns, footer), ROW_MARKER)

    def _stamped(self, rows: DataFrame, *, is_new: bool) -> DataFrame:
        columns = {column.name: column for column in self.slice.columns}
        if self.range.by_values:
            stamp = value_stamp(rows, [column for name, column in columns.items() if name not in self.slice.keys])
        else:
            # Rows of a file without ids, as a writer leaves it that suspends row tracking, are equal to no others.
            none = F.lit(-1 if is_new else -2)
            stamp = F.coalesce(ROW_ID, none), F.coalesce(ROW_VERSION, none)
        return rows.select(
            *(_source(columns[name]).alias(key) for name, key in zip(self.slice.keys, self._keys, strict=True)),
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


def _source(column: LandedColumn) -> Column:
    """Return the source's column; for the mirror's row id column, the row tracking id."""
    return F.col(ROW_ID) if column.is_row_id else F.col(quoted(column.name))
