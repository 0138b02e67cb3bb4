"""The check on order: keys whose markers would also allow another order are compared with the feed, read anew.

An INSERT comes before an UPDATE of its key, and an UPDATE before a DELETE; `key_uniqueness` has seen to that. Of a key
with other changes only the feed can tell: its n-th row in the parts must be its n-th change by commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.audit.finding import Finding
from mirror_assets.audit.key_look import SAMPLES, KeyLook
from mirror_assets.audit.keyed_rows import MARKER, PLACE, VERSION, aliases
from mirror_assets.audit.repeats import are_updated_twice, shown_key, shown_place
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.delta.columns import LandedColumn, landed_value, quoted
from mirror_assets.delta.feed_columns import COMMIT_VERSION, is_new_row
from mirror_assets.delta.reader import read_changes
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.markers import ROW_MARKER, Marker


@dataclass(frozen=True)
class Feed:
    """Where the feed of a slice can be read again."""

    uri: str
    columns: tuple[LandedColumn, ...]
    vector_versions: tuple[int, ...] = ()


def row_order(spark: Callable[[], SparkSession], staged: StagedSlice, look: KeyLook, feed: Feed) -> Finding:
    """Keys with several changes appear in commit order, where their markers would also allow another order.

    A session starts only when there are such keys: the order of different keys is free. Values are read only where a
    key is updated twice: nothing else tells these rows apart. Raises SparkFailed and its like.
    """
    rows, names = look.undecided, aliases(staged.record)
    keys = rows.group_by(names).aggregate([]) if rows else None
    figures: dict[str, int | float | str] = {
        "repeated_keys": look.repeated,
        "keys_compared": len(keys) if keys else 0,
    }
    if not rows:
        return Finding("row_order", (), figures)
    with spark_errors(f"the feed of {feed.uri}"):
        by_values = feed if are_updated_twice(rows, names) else replace(feed, columns=())
        wrong = _differences(spark(), staged, rows, keys, by_values).limit(SAMPLES).collect()
    problems = tuple(
        f"key {shown_key(staged.record, row.asDict())}: its change number {row['nth']} is "
        f"{_change(row['found_marker'])} in {_place(staged, row['place'])}, "
        f"and {_change(row['wanted_marker'])} at version {row['version']} in the feed"
        for row in wrong
    )
    return Finding("row_order", problems, figures)


def _place(staged: StagedSlice, place: int | None) -> str:
    return "no part" if place is None else shown_place(staged, place)


def _differences(spark: SparkSession, staged: StagedSlice, rows: pa.Table, chosen: pa.Table, feed: Feed) -> DataFrame:
    """Changes of these keys whose marker, or values, differ between parts and feed."""
    keys, only = aliases(staged.record), F.broadcast(spark.createDataFrame(chosen))
    found = _numbered(_found(spark, staged, feed, rows), keys, F.col(PLACE))
    expected = _numbered(_expected(spark, staged, feed, only), keys, F.col("version"))
    same = F.col("found_marker").eqNullSafe(F.col("wanted_marker")) & F.col("found_hash").eqNullSafe(
        F.col("wanted_hash")
    )
    return found.join(expected, [*keys, "nth"], "full_outer").where(~same)


def _found(spark: SparkSession, staged: StagedSlice, feed: Feed, rows: pa.Table) -> DataFrame:
    """Rows of the parts: keys, marker, place, and a hash of the values if they are to be compared."""
    known = spark.createDataFrame(rows.drop_columns(VERSION)).withColumnRenamed(MARKER, "found_marker")
    if not feed.columns:
        return known.withColumn("found_hash", F.lit(None).cast("bigint"))
    written = spark.read.parquet(staged.copies.spark_path(staged.record.folder.parts))
    file = written.metadataColumn("_metadata")  # also where the source has a column of this name
    place = _rows_before(staged, file.getField("file_name")) + file.getField("row_index")
    deleted = F.col(ROW_MARKER) == int(Marker.DELETE)
    values = F.xxhash64(*(F.col(quoted(column.name)) for column in feed.columns))
    parts = written.where(file.getField("file_name").isin(list(staged.rows_before)))
    hashes = parts.select(place.alias(PLACE), F.when(~deleted, values).alias("found_hash"))
    return hashes.join(F.broadcast(known), PLACE)


def _rows_before(staged: StagedSlice, file: Column) -> Column:
    """The number of rows in the parts before the one of this name."""
    before = staged.rows_before.items()
    return F.element_at(F.create_map(*(F.lit(value) for pair in before for value in pair)), file)


def _expected(spark: SparkSession, staged: StagedSlice, feed: Feed, chosen: DataFrame) -> DataFrame:
    """One row per key and commit of the feed: the marker that must have landed, and a hash of the values likewise."""
    key = staged.record.key
    is_new = is_new_row()
    changes = read_changes(spark, feed.uri, key.first, key.last, feed.vector_versions)
    values = F.xxhash64(*(landed_value(column, changes) for column in feed.columns))
    new_hash = F.when(is_new, values) if feed.columns else F.lit(None).cast("bigint")
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
