"""Checks on order and uniqueness: keys that occur more than once are compared with the feed, read anew.

Parts carry no commit version, so a key with several changes can only be proved to be in commit order against the feed:
its n-th row in the parts must be its n-th change by commit, in marker and in values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.audit.finding import Finding
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.audit.uniqueness import RepeatedKeys, aliases, shown_key
from mirror_assets.delta.columns import LandedColumn, landed_value, quoted
from mirror_assets.delta.feed_columns import COMMIT_VERSION, is_new_row
from mirror_assets.delta.reader import read_changes
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.landing.format import SliceKind
from mirror_assets.markers import ROW_MARKER, Marker

_SAMPLES = 5
# Of more repeated keys than these, so many are compared, spread evenly: an encoder that errs, errs by rule.
_MOST_KEYS = 200_000


@dataclass(frozen=True)
class Feed:
    """Where the feed of a slice can be read again."""

    uri: str
    columns: tuple[LandedColumn, ...]
    vector_versions: tuple[int, ...] = ()


def row_order(spark: Callable[[], SparkSession], staged: StagedSlice, repeated: RepeatedKeys, feed: Feed) -> Finding:
    """Keys with several changes appear in commit order, with the marker and the values of each commit.

    A session starts only when a key is repeated: the order of different keys is free. Raises SparkFailed and its like.
    """
    compared = _some(repeated.counted)
    figures: dict[str, int | float | str] = {"repeated_keys": len(repeated), "keys_compared": len(compared)}
    if not len(repeated) or staged.record.kind is not SliceKind.CHANGES:
        return Finding("row_order", (), figures)
    with spark_errors(f"the feed of {feed.uri}"):
        wrong = _differences(spark(), staged, compared, feed).limit(_SAMPLES).collect()
    problems = tuple(
        f"key {shown_key(staged.record, row.asDict())}: its change number {row['nth']} is "
        f"{_change(row['found_marker'])} in {row['file'] or 'no part'}, "
        f"and {_change(row['wanted_marker'])} at version {row['version']} in the feed"
        for row in wrong
    )
    return Finding("row_order", problems, figures)


def _some(counted: pa.Table) -> pa.Table:
    """Keys to compare."""
    step = max(1, -(-len(counted) // _MOST_KEYS))
    return counted.drop_columns("rows").take(pa.array(range(0, len(counted), step), pa.int64()))


def _differences(spark: SparkSession, staged: StagedSlice, compared: pa.Table, feed: Feed) -> DataFrame:
    """Changes of these keys whose marker or values differ between parts and feed."""
    keys, chosen = aliases(staged.record), F.broadcast(spark.createDataFrame(compared))
    found = _numbered(_found(spark, staged, feed, chosen), keys, F.col("file"), F.col("row"))
    expected = _numbered(_expected(spark, staged, feed, chosen), keys, F.col("version"))
    same = F.col("found_marker").eqNullSafe(F.col("wanted_marker")) & F.col("found_hash").eqNullSafe(
        F.col("wanted_hash")
    )
    return found.join(expected, [*keys, "nth"], "full_outer").where(~same)


def _found(spark: SparkSession, staged: StagedSlice, feed: Feed, chosen: DataFrame) -> DataFrame:
    """Rows of the parts: keys, marker, hash of the values, and their place."""
    folder = staged.copies.spark_path(staged.record.folder.parts)
    written = spark.read.parquet(folder)
    place = written.metadataColumn("_metadata")  # also where the source has a column of this name
    parts = written.where(place.getField("file_name").isin([part.name for part in staged.record.parts]))
    deleted = F.col(ROW_MARKER) == int(Marker.DELETE)
    values = [F.col(quoted(column.name)) for column in feed.columns]
    return _only(parts, staged, chosen).select(
        *_keys(staged),
        F.col(ROW_MARKER).alias("found_marker"),
        F.when(~deleted, F.xxhash64(*values)).alias("found_hash"),
        place.getField("file_name").alias("file"),
        place.getField("row_index").alias("row"),
    )


def _expected(spark: SparkSession, staged: StagedSlice, feed: Feed, chosen: DataFrame) -> DataFrame:
    """One row per key and commit of the feed: the marker and values that must have landed."""
    key = staged.record.key
    is_new = is_new_row()
    changes = read_changes(spark, feed.uri, key.first, key.last, feed.vector_versions)
    new_hash = F.when(is_new, F.xxhash64(*(landed_value(column, changes) for column in feed.columns)))
    grouped = (
        _only(changes, staged, chosen)
        .select(
            *_keys(staged),
            F.col(COMMIT_VERSION).alias("version"),
            is_new.alias("new"),
            new_hash.alias("h"),
        )
        .groupBy(*aliases(staged.record), "version")
        .agg(
            F.bool_or("new").alias("has_new"),
            F.bool_or(~F.col("new")).alias("has_old"),
            F.max("h").alias("wanted_hash"),
        )
    )
    update = F.when(F.col("has_old"), int(Marker.UPDATE)).otherwise(int(Marker.INSERT))
    marker = F.when(F.col("has_new"), update).otherwise(int(Marker.DELETE))
    return grouped.select(*aliases(staged.record), "version", marker.alias("wanted_marker"), "wanted_hash")


def _keys(staged: StagedSlice) -> list[Column]:
    record = staged.record
    return [F.col(quoted(key)).alias(alias) for key, alias in zip(record.keys, aliases(record), strict=True)]


def _only(rows: DataFrame, staged: StagedSlice, chosen: DataFrame) -> DataFrame:
    """Rows of the chosen keys, before anything is computed of them."""
    pairs = zip(staged.record.keys, aliases(staged.record), strict=True)
    is_chosen = [rows[quoted(key)] == chosen[alias] for key, alias in pairs]
    return rows.join(chosen, is_chosen, "left_semi")


def _numbered(side: DataFrame, keys: list[str], *order: Column) -> DataFrame:
    window = Window.partitionBy(*keys).orderBy(*order)
    return side.withColumn("nth", F.row_number().over(window))


def _change(marker: int | None) -> str:
    return "missing" if marker is None else Marker(marker).name if marker in set(Marker) else f"marker {marker}"
