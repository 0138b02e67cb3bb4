"""Read what the check on order compares: the source's change feed, and the values of staged rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.columns import COMMIT_VERSION, is_new_row, landed_value, quoted
from mirror_assets.encode.feed_reader import read_changes
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.source.schema import LandedColumn
from mirror_assets.verify.keys import PLACE, VERSION, aliases
from mirror_assets.verify.staged import Numbers, StagedSlice

# More keys than these are joined with the feed by a shuffle.
_BROADCAST_KEYS = 1_000_000
WANTED_MARKER, WANTED_HASH, FOUND_HASH = "wanted_marker", "wanted_hash", "found_hash"


class RowReader(Protocol):
    """Reads rows of a slice from the change feed and from its parts. Methods raise what `spark_errors` raises."""

    def expected(self, keys: pa.Table, *, with_values: bool) -> pa.Table:
        """Return what must have landed of these keys, by the feed, in commit order: one row per key and commit.

        Columns are the keys, `version`, `wanted_marker` and `wanted_hash`: the hash of the values that must have
        landed, NULL for a DELETE, and in every row without `with_values`.
        """

    def some_hashes(self, places: pa.Table) -> pa.Table:
        """Return `place` and `found_hash` of the staged rows at these places; the hash of a DELETE is NULL."""

    def all_hashes(self) -> Numbers:
        """Return the hash of every staged row by its place, 8 bytes a row; 0 for a DELETE."""


@dataclass(frozen=True)
class SparkRowReader:
    """A RowReader on Spark; calls `spark` for the session at the first read. `columns` are all landed columns."""

    spark: Callable[[], SparkSession]
    staged: StagedSlice
    uri: str
    columns: tuple[LandedColumn, ...]
    vector_versions: Callable[[], tuple[int, ...]]

    def expected(self, keys: pa.Table, *, with_values: bool) -> pa.Table:
        """Return one row per key and commit, see RowReader."""
        with spark_errors(f"{self.staged.record.table}, comparing staged parts with the feed of {self.uri}"):
            return self._expected(keys, with_values=with_values)

    def some_hashes(self, places: pa.Table) -> pa.Table:
        """Return `place` and `found_hash`, see RowReader."""
        with spark_errors(f"{self.staged.record.table}, reading the parts of slice {self.staged.record.slice} again"):
            wanted = self.spark().createDataFrame(places.select([PLACE]))
            return self._hashes().join(F.broadcast(wanted), PLACE).toArrow()

    def all_hashes(self) -> Numbers:
        """Return every hash by place, see RowReader."""
        with spark_errors(f"{self.staged.record.table}, reading the parts of slice {self.staged.record.slice} again"):
            found = self._hashes().toArrow()
        hashes = np.zeros(self.staged.record.markers.total, np.int64)
        hashes[found[PLACE].to_numpy()] = found[FOUND_HASH].fill_null(0).to_numpy()
        return hashes

    def _expected(self, keys: pa.Table, *, with_values: bool) -> pa.Table:
        key, is_new = self.staged.record.slice, is_new_row()
        changes = read_changes(self.spark(), self.uri, key.first, key.last, self.vector_versions())
        values = F.xxhash64(*(landed_value(column, changes) for column in self.columns))
        hash_ = F.when(is_new, values) if with_values else F.lit(None).cast("bigint")
        chosen = self.spark().createDataFrame(keys)
        only = F.broadcast(chosen) if len(keys) < _BROADCAST_KEYS else chosen
        named = zip(self.staged.record.keys, aliases(self.staged.record), strict=True)
        rows = self._only(changes, only).select(
            *(F.col(quoted(name)).alias(alias) for name, alias in named),
            F.col(COMMIT_VERSION).alias(VERSION),
            is_new.alias("new"),
            hash_.alias("hash"),
        )
        return _by_commit(rows.toArrow(), aliases(self.staged.record))

    def _only(self, rows: DataFrame, chosen: DataFrame) -> DataFrame:
        """Keep the rows of the chosen keys, before anything is computed of them."""
        pairs = zip(self.staged.record.keys, aliases(self.staged.record), strict=True)
        is_chosen = [rows[quoted(key)] == chosen[alias] for key, alias in pairs]
        return rows.join(chosen, is_chosen, "left_semi")

    def _hashes(self) -> DataFrame:
        paths = [self.staged.copies.spark_path(path) for path in self.staged.paths]
        written = self.spark().read.parquet(*paths)
        file = written.metadataColumn("_metadata")  # also where the source has a column of this name
        place = self._rows_before(file.getField("file_name")) + file.getField("row_index")
        values = F.xxhash64(*(F.col(quoted(column.name)) for column in self.columns))
        landed = F.when(F.col(ROW_MARKER) != int(Marker.DELETE), values)
        return written.select(place.alias(PLACE), landed.alias(FOUND_HASH))

    def _rows_before(self, file: Column) -> Column:
        """Return the number of rows in all parts before the one with this file name: names are unique among parts."""
        before = self.staged.rows_before.items()
        pairs = ((name.rpartition("/")[2], rows) for name, rows in before)
        return F.element_at(F.create_map(*(F.lit(value) for pair in pairs for value in pair)), file)


def _by_commit(rows: pa.Table, keys: list[str]) -> pa.Table:
    """Pair old and new rows into the changes that must have landed."""
    by = [*keys, VERSION]
    grouped = rows.group_by(by).aggregate([("new", "max"), ("new", "min"), ("hash", "max")]).sort_by(VERSION)
    update = pc.if_else(pc.invert(grouped["new_min"]), int(Marker.UPDATE), int(Marker.INSERT))
    marker = pc.if_else(grouped["new_max"], update, int(Marker.DELETE)).cast(pa.int32())
    wanted = grouped.select(by).append_column(WANTED_MARKER, marker)
    return wanted.append_column(WANTED_HASH, grouped["hash_max"])
