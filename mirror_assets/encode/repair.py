"""Encodes a repair: the changes that make the mirror equal to the source, found by comparing both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from mirror_assets.encode.columns import described
from mirror_assets.encode.differing_rows import Sides, differing_rows
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.observed import observed
from mirror_assets.encode.readable import readable
from mirror_assets.encode.spark_errors import DuplicateKey, spark_errors
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.row_values import shown_key
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.schema import LandedColumn
from mirror_assets.source.sql_names import quoted

MARKERS = (Marker.UPSERT, Marker.UPDATE, Marker.DELETE)
_SAMPLES = 10
_REPEATS = "repeats"


@dataclass(frozen=True)
class RepairChanges:
    """The changes of a repair by row marker: how many, and the keys of the first ten."""

    counts: Mapping[Marker, int]
    keys: Mapping[Marker, Sequence[str]]


@dataclass(frozen=True)
class RepairSlice:
    """A repair to encode: source and mirror, the buckets of keys in which they differ, and the number of parts.

    `columns` are those of `sides`, in order; `version` is the source's.
    """

    table: str
    version: int
    sides: Sides
    buckets: frozenset[int]
    columns: tuple[LandedColumn, ...]
    parts: int

    @property
    def keys(self) -> dict[str, str]:
        """The names of the key columns, by their names in `sides`."""
        return {alias: self.columns[int(alias[1:])].name for alias in self.sides.identity}


def repair_changes(slice_: RepairSlice) -> RepairChanges:
    """Count the changes and return sample keys; write nothing. Raises DuplicateKey and the errors of `spark_error`."""
    counted, samples = Observation(), dict[Marker, list[str]]()
    of_marker = Window.partitionBy(ROW_MARKER).orderBy(*slice_.keys)
    with spark_errors(f"{slice_.table}, comparing version {slice_.version} with the mirror"):
        rows = _marked(slice_).observe(counted, *_counts())
        first = rows.withColumn("_place", F.row_number().over(of_marker)).where(F.col("_place") <= _SAMPLES)
        for row in readable(first.orderBy(ROW_MARKER, *slice_.keys)).collect():
            samples.setdefault(Marker(row[ROW_MARKER]), []).append(_shown(row.asDict(), slice_))
        counts = observed(counted)
        _require_unique(slice_, counts)
    return RepairChanges({marker: counts[marker.name] for marker in MARKERS}, samples)


def encode_repair(slice_: RepairSlice, folder: str, compression: str, footer: Mapping[str, str]) -> ReadRows:
    """Write the changes into `folder`, one file per part that has rows; return their counts by change type.

    Raises DuplicateKey, with sample keys, when the source has a key twice; and the errors of `spark_error`.
    """
    counted, keys = Observation(), slice_.keys
    # NULL for a DELETE, which needs no more than its keys.
    new = F.first(F.when(F.col("_side") == 1, F.struct(*slice_.sides.source.columns)), ignorenulls=True).alias("_new")
    with spark_errors(f"{slice_.table}, encoding into {folder}"):
        values = [
            (F.col(alias) if alias in keys else F.col("_new").getField(alias)).alias(column.name)
            for alias, column in zip(slice_.sides.source.columns, slice_.columns, strict=True)
        ]
        rows = _marked(slice_, new).observe(counted, *_counts()).select(*values, ROW_MARKER)
        parts = rows.repartition(slice_.parts, *map(quoted, keys.values()))
        write_parts(parts.select(*described(slice_.columns, footer), ROW_MARKER), folder, compression)
        counts = observed(counted)
        _require_unique(slice_, counts)
    updates = counts[Marker.UPDATE.name]
    # The old rows of an UPSERT are unknown.
    return ReadRows(counts[Marker.UPSERT.name], updates, updates, counts[Marker.DELETE.name])


def _marked(slice_: RepairSlice, *carried: Column) -> DataFrame:
    """Return the differing keys with their row markers: UPSERT unless the mirror has one row of the key.

    Not INSERT for a key that the mirror lacks: if Fabric reported too early that it had applied everything, the row may
    have come meanwhile, and an INSERT would double it.
    """
    source, mirror = F.col("source_rows"), F.col("mirror_rows")
    marker = F.when(source == 0, int(Marker.DELETE)).when(mirror == 1, int(Marker.UPDATE)).otherwise(int(Marker.UPSERT))
    return differing_rows(slice_.sides, slice_.buckets, *carried).withColumn(ROW_MARKER, marker.cast("int"))


def _counts() -> list[Column]:
    by_marker = [F.count_if(F.col(ROW_MARKER) == int(marker)).alias(marker.name) for marker in MARKERS]
    return [*by_marker, F.count_if(F.col("source_rows") > 1).alias(_REPEATS)]


def _require_unique(slice_: RepairSlice, counts: Mapping[str, int]) -> None:
    if repeats := counts[_REPEATS]:
        repeated = differing_rows(slice_.sides, slice_.buckets).where("source_rows > 1").limit(_SAMPLES)
        rows = readable(repeated).collect()
        such = tuple(f"{_shown(row.asDict(), slice_)} at version {slice_.version}" for row in rows)
        raise DuplicateKey(slice_.table, repeats, such)


def _shown(row: Mapping[str, object], slice_: RepairSlice) -> str:
    return shown_key({name: row[alias] for alias, name in slice_.keys.items()})
