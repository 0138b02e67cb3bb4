"""Encodes a repair: the changes that make the mirror equal to the source, for keys that a comparison found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mirror_assets.encode.columns import HelperNames, described
from mirror_assets.encode.counted import Counted
from mirror_assets.encode.errors import duplicate_key
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.rows_of_keys import BROADCAST_KEYS, rows_of_keys
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.redaction import shown_key
from mirror_assets.source.commits import ReadRows
from mirror_assets.source.schema import LandedColumn
from mirror_assets.spark_messages import readable
from mirror_assets.spark_names import quoted

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
    """A repair to encode: the keys whose rows differ, the source's rows to take, and the number of parts.

    `differing` has each key once, with `source_rows` and `mirror_rows`, the numbers of its rows; `keys` are the names
    of the landed key columns by their names there. `rows_to_land` are all rows of the source's `version` as they land,
    with the names of `columns`.
    """

    table: str
    version: int
    differing: DataFrame
    keys: Mapping[str, str]
    rows_to_land: DataFrame
    columns: tuple[LandedColumn, ...]
    parts: int


def repair_changes(slice_: RepairSlice) -> RepairChanges:
    """Count the changes and return sample keys; write nothing. Raises DUPLICATE_KEY and the errors of `spark_error`."""
    samples = dict[Marker, list[str]]()
    of_marker = Window.partitionBy(ROW_MARKER).orderBy(*slice_.keys)
    with spark_errors(f"{slice_.table}, comparing version {slice_.version} with the mirror"), _marked(slice_) as rows:
        counts = _counted(slice_, rows)
        first = rows.withColumn("_place", F.row_number().over(of_marker)).where(F.col("_place") <= _SAMPLES)
        for row in readable(first.orderBy(ROW_MARKER, *slice_.keys)).collect():
            samples.setdefault(Marker(row[ROW_MARKER]), []).append(_shown(row.asDict(), slice_))
    return RepairChanges(counts, samples)


def encode_repair(slice_: RepairSlice, folder: str, footer: Mapping[str, str]) -> Counted:
    """Write the changes into `folder`, one file per part that has rows; return their counts by change type.

    The counts are those of the comparison. A row that `rows_to_land` lacks or repeats makes the numbers in the files
    differ from them, and the check `row_conservation` finds that. Raises DUPLICATE_KEY, with sample keys, when the
    source has a key twice; and the errors of `spark_error`.
    """
    with spark_errors(f"{slice_.table}, encoding into {folder}"), _marked(slice_) as marked:
        counts = _counted(slice_, marked)
        rows = _landed_rows(slice_, marked, is_few=sum(counts.values()) <= BROADCAST_KEYS)
        long_values = write_parts(rows.select(*described(slice_.columns, footer), ROW_MARKER), folder)
    updates = counts[Marker.UPDATE]
    # The old rows of an UPSERT are unknown.
    read = ReadRows(counts[Marker.UPSERT], updates, updates, counts[Marker.DELETE])
    return Counted(read, read, long_values=long_values)


@contextmanager
def _marked(slice_: RepairSlice) -> Iterator[DataFrame]:
    """Yield the differing keys with their row markers, compared once: UPSERT unless the mirror has one row of the key.

    Not INSERT for a key that the mirror lacks: if Fabric reported too early that it had applied everything, the row may
    have come meanwhile, and an INSERT would double it.
    """
    source, mirror = F.col("source_rows"), F.col("mirror_rows")
    marker = F.when(source == 0, int(Marker.DELETE)).when(mirror == 1, int(Marker.UPDATE)).otherwise(int(Marker.UPSERT))
    marked = slice_.differing.select(*slice_.keys, "source_rows", marker.cast("int").alias(ROW_MARKER))
    # Adaptive execution leaves the partitions of what is persisted unchanged: a thousand, most of them empty.
    marked = marked.repartition(slice_.parts, *slice_.keys).persist(StorageLevel.DISK_ONLY)
    try:
        yield marked
    finally:
        marked.unpersist()


def _counted(slice_: RepairSlice, marked: DataFrame) -> dict[Marker, int]:
    """Return the numbers of changes by marker. Raises DUPLICATE_KEY if the source has several rows of a key."""
    by_marker = [F.count_if(F.col(ROW_MARKER) == int(marker)).alias(marker.name) for marker in MARKERS]
    counts = marked.agg(*by_marker, F.count_if(F.col("source_rows") > 1).alias(_REPEATS)).collect()[0]
    if repeats := counts[_REPEATS]:
        rows = readable(marked.where("source_rows > 1").limit(_SAMPLES)).collect()
        such = tuple(f"{_shown(row.asDict(), slice_)} at version {slice_.version}" for row in rows)
        raise duplicate_key(slice_.table, repeats, such)
    return {marker: counts[marker.name] for marker in MARKERS}


def _landed_rows(slice_: RepairSlice, marked: DataFrame, *, is_few: bool) -> DataFrame:
    """Return the rows of the marked keys with their markers, in as many partitions as parts; a DELETE has its key."""
    ours = HelperNames.beside(slice_.columns)
    keys = {name: f"{ours.key}{at}" for at, name in enumerate(slice_.keys.values())}
    named = zip(slice_.keys, keys.values(), strict=True)
    changes = marked.select(*(F.col(alias).alias(key) for alias, key in named), ROW_MARKER)
    is_deleted = F.col(ROW_MARKER) == int(Marker.DELETE)
    rows = rows_of_keys(changes, ~is_deleted, slice_.rows_to_land, keys, ours, slice_.parts, is_few=is_few)
    values = (F.col(keys.get(column.name) or quoted(column.name)).alias(column.name) for column in slice_.columns)
    return rows.where(is_deleted | F.col(ours.is_found).isNotNull()).select(*values, ROW_MARKER)


def _shown(row: Mapping[str, object], slice_: RepairSlice) -> str:
    return shown_key({name: row[alias] for alias, name in slice_.keys.items()})
