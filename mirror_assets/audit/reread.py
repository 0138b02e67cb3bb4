"""Reads again what the check on order compares: the source's feed, and the values of staged rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.audit.key_codes import Numbers
from mirror_assets.audit.keyed_rows import PLACE, VERSION, aliases
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.delta.columns import landed_value, quoted
from mirror_assets.delta.feed_columns import COMMIT_VERSION, is_new_row
from mirror_assets.delta.reader import read_changes
from mirror_assets.delta.schema import LandedColumn
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.markers import ROW_MARKER, Marker

# More keys than these go through a shuffle with the feed's.
_BROADCAST_KEYS = 1_000_000
WANTED_MARKER, WANTED_HASH, FOUND_HASH = "wanted_marker", "wanted_hash", "found_hash"


class Reread(Protocol):
    """What can be read again of a slice. Raises what `spark_error` makes of Spark's exceptions."""

    def expected(self, keys: pa.Table, *, with_values: bool) -> pa.Table:
        """One row per key of these and commit, in commit order: the keys, `version`, `wanted_marker`, `wanted_hash`.

        The hash is of the values that must have landed; NULL for a DELETE, and everywhere without values.
        """

    def some_hashes(self, places: pa.Table) -> pa.Table:
        """`place` and `found_hash` of the staged rows at these places; NULL for a DELETE."""

    def all_hashes(self) -> Numbers:
        """The hash of every staged row by its place; 0 for a DELETE."""


@dataclass(frozen=True)
class SparkReread:
    """Reads by Spark, whose session starts when it is needed; `columns` are all that land."""

    spark: Callable[[], SparkSession]
    staged: StagedSlice
    uri: str
    columns: tuple[LandedColumn, ...]
    vector_versions: Callable[[], tuple[int, ...]]

    def expected(self, keys: pa.Table, *, with_values: bool) -> pa.Table:
        """One row per key and commit, as `Reread` has it."""
        with spark_errors(f"{self.staged.record.table}, comparing staged parts with the feed of {self.uri}"):
            return self._expected(keys, with_values=with_values)

    def some_hashes(self, places: pa.Table) -> pa.Table:
        """`place` and `found_hash`, as `Reread` has them."""
        with spark_errors(f"{self.staged.record.table}, reading the parts of slice {self.staged.record.slice} again"):
            wanted = self.spark().createDataFrame(places.select([PLACE]))
            return self._hashes().join(F.broadcast(wanted), PLACE).toArrow()

    def all_hashes(self) -> Numbers:
        """Every hash, as `Reread` has it: eight bytes a row."""
        with spark_errors(f"{self.staged.record.table}, reading the parts of slice {self.staged.record.slice} again"):
            found = self._hashes().toArrow()
        hashes = np.zeros(self.staged.record.markers.total, np.int64)
        hashes[found[PLACE].to_numpy()] = found[FOUND_HASH].fill_null(0).to_numpy()
        return hashes

    def _expected(self, keys: pa.Table, *, with_values: bool) -> pa.Table:
        key, is_new = self.staged.record.key, is_new_row()
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
        """Rows of the chosen keys, before anything is computed of them."""
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
        """The number of rows in the parts before the one whose file has this name, which no other part's has."""
        before = self.staged.rows_before.items()
        pairs = ((name.rpartition("/")[2], rows) for name, rows in before)
        return F.element_at(F.create_map(*(F.lit(value) for pair in pairs for value in pair)), file)


def _by_commit(rows: pa.Table, keys: list[str]) -> pa.Table:
    """What must have landed of old and new rows."""
    by = [*keys, VERSION]
    grouped = rows.group_by(by).aggregate([("new", "max"), ("new", "min"), ("hash", "max")]).sort_by(VERSION)
    update = pc.if_else(pc.invert(grouped["new_min"]), int(Marker.UPDATE), int(Marker.INSERT))
    marker = pc.if_else(grouped["new_max"], update, int(Marker.DELETE)).cast(pa.int32())
    wanted = grouped.select(by).append_column(WANTED_MARKER, marker)
    return wanted.append_column(WANTED_HASH, grouped["hash_max"])
