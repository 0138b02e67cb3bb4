"""Checks on order and uniqueness: keys that occur more than once are compared with the feed, read anew.

Parts carry no commit version, so a key with several changes can only be proved to be in commit order against the feed:
its n-th row in the parts must be its n-th change by commit, in marker and in values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.audit.finding import Finding
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.delta.columns import LandedColumn, landed_value, quoted
from mirror_assets.delta.feed_columns import COMMIT_VERSION, is_new_row
from mirror_assets.delta.reader import read_changes
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.delta.versions import read_version
from mirror_assets.landing.format import SliceKind
from mirror_assets.markers import ROW_MARKER, Marker

_SAMPLES = 5
# Beyond this many repeated keys, joining with all of them costs less than sending them to Spark.
_MOST_KEYS_TO_SEND = 200_000


@dataclass(frozen=True)
class Feed:
    """Where the feed of a slice can be read again."""

    uri: str
    columns: tuple[LandedColumn, ...]
    data_commits: int
    vector_versions: tuple[int, ...] = ()


def repeated_keys(staged: StagedSlice) -> pa.Table:
    """The keys that occur in more than one row of the slice's parts: columns `key0` …, and `rows`, their number."""
    keys = _aliases(staged)
    tables = []
    for path in staged.paths if keys else ():
        with staged.open(path) as file:
            tables.append(file.read(list(staged.record.keys)).select(list(staged.record.keys)).rename_columns(keys))
    if not tables:
        return pa.table({"rows": pa.array([], pa.int64())})
    counted = pa.concat_tables(tables).group_by(keys).aggregate([([], "count_all")])
    repeated = counted.filter(pc.field("count_all") > 1)
    return repeated.rename_columns([*keys, "rows"])


def _aliases(staged: StagedSlice) -> list[str]:
    """Names for the key columns that no other column here has, whatever the source calls them."""
    return [f"key{index}" for index in range(len(staged.record.keys))]


def key_uniqueness(staged: StagedSlice, repeated: pa.Table, feed: Feed) -> Finding:
    """At most one change per key and commit; a key can't have more rows than the slice has commits with data.

    A key that is inserted again has two rows, be it in another commit. Without keys, nothing can be repeated.
    """
    allowed = feed.data_commits if staged.record.kind is SliceKind.CHANGES else 1
    twice = repeated.filter(pc.field("rows") > allowed)
    problems = [
        f"key {_shown(staged, row)} has {row['rows']} rows {_where(staged, allowed)}"
        for row in twice.slice(0, _SAMPLES).to_pylist()
    ]
    if len(twice) > _SAMPLES:
        problems.append(f"and {len(twice) - _SAMPLES} more keys")
    return Finding("key_uniqueness", tuple(problems), {"repeated_keys": len(repeated)})


def version_uniqueness(spark: SparkSession, uri: str, version: int, keys: Sequence[str]) -> Finding:
    """The same of all rows of a version, of which a staged chunk holds some. Raises SparkFailed and its like."""
    columns = [F.col(quoted(key)).alias(f"key{index}") for index, key in enumerate(keys)]
    with spark_errors(f"the keys of {uri}"):
        counted = read_version(spark, uri, version).groupBy(*columns).agg(F.count(F.lit(1)).alias("rows"))
        twice = counted.where(F.col("rows") > 1).limit(_SAMPLES).collect()
    problems = tuple(
        f"key {', '.join(f'{key}={value!r}' for key, value in zip(keys, row, strict=False))} has {row[-1]} rows"
        for row in twice
    )
    return Finding("key_uniqueness", problems)


def row_order(spark: Callable[[], SparkSession], staged: StagedSlice, repeated: pa.Table, feed: Feed) -> Finding:
    """Keys with several changes appear in commit order, with the marker and the values of each commit.

    A session starts only when a key is repeated: the order of different keys is free. Raises SparkFailed and its like.
    """
    figures: dict[str, int | float | str] = {"keys_compared": len(repeated)}
    if not len(repeated) or staged.record.kind is not SliceKind.CHANGES:
        return Finding("row_order", (), figures)
    with spark_errors(f"the feed of {feed.uri}"):
        wrong = _differences(spark(), staged, repeated, feed).limit(_SAMPLES).collect()
    problems = tuple(
        f"key {_shown(staged, row.asDict())}: its change number {row['nth']} is "
        f"{_change(row['found_marker'])} in {row['file'] or 'no part'}, "
        f"and {_change(row['wanted_marker'])} at version {row['version']} in the feed"
        for row in wrong
    )
    return Finding("row_order", problems, figures)


def _where(staged: StagedSlice, commits: int) -> str:
    if staged.record.kind is SliceKind.APPENDS:
        return "that were appended"
    return f"in {commits} commit{'s' if commits > 1 else ''}"


def _differences(spark: SparkSession, staged: StagedSlice, repeated: pa.Table, feed: Feed) -> DataFrame:
    """Changes whose marker or values differ between parts and feed."""
    keys = _aliases(staged)
    wanted = repeated.drop_columns("rows") if len(repeated) <= _MOST_KEYS_TO_SEND else None
    found, expected = _found(spark, staged, feed), _expected(spark, staged, feed)
    if wanted is not None:
        chosen = F.broadcast(spark.createDataFrame(wanted))
        found, expected = (_only(side, chosen, keys) for side in (found, expected))
    found = _numbered(found, keys, F.col("file"), F.col("row"))
    expected = _numbered(expected, keys, F.col("version"))
    same = F.col("found_marker").eqNullSafe(F.col("wanted_marker")) & F.col("found_hash").eqNullSafe(
        F.col("wanted_hash")
    )
    return found.join(expected, [*keys, "nth"], "full_outer").where(~same)


def _found(spark: SparkSession, staged: StagedSlice, feed: Feed) -> DataFrame:
    """Rows of the parts: keys, marker, hash of the values, and their place."""
    folder = staged.copies.spark_path(staged.record.folder.parts)
    written = spark.read.parquet(folder)
    place = written.metadataColumn("_metadata")  # also where the source has a column of this name
    parts = written.where(place.getField("file_name").isin([part.name for part in staged.record.parts]))
    deleted = F.col(ROW_MARKER) == int(Marker.DELETE)
    values = [F.col(quoted(column.name)) for column in feed.columns]
    return parts.select(
        *_keys(staged),
        F.col(ROW_MARKER).alias("found_marker"),
        F.when(~deleted, F.xxhash64(*values)).alias("found_hash"),
        place.getField("file_name").alias("file"),
        place.getField("row_index").alias("row"),
    )


def _expected(spark: SparkSession, staged: StagedSlice, feed: Feed) -> DataFrame:
    """One row per key and commit of the feed: the marker and values that must have landed."""
    key = staged.record.key
    is_new = is_new_row()
    changes = read_changes(spark, feed.uri, key.first, key.last, feed.vector_versions)
    new_hash = F.when(is_new, F.xxhash64(*(landed_value(column, changes) for column in feed.columns)))
    grouped = (
        changes.select(
            *_keys(staged),
            F.col(COMMIT_VERSION).alias("version"),
            is_new.alias("new"),
            new_hash.alias("h"),
        )
        .groupBy(*_aliases(staged), "version")
        .agg(
            F.bool_or("new").alias("has_new"),
            F.bool_or(~F.col("new")).alias("has_old"),
            F.max("h").alias("wanted_hash"),
        )
    )
    update = F.when(F.col("has_old"), int(Marker.UPDATE)).otherwise(int(Marker.INSERT))
    marker = F.when(F.col("has_new"), update).otherwise(int(Marker.DELETE))
    return grouped.select(*_aliases(staged), "version", marker.alias("wanted_marker"), "wanted_hash")


def _keys(staged: StagedSlice) -> list[Column]:
    return [F.col(quoted(key)).alias(alias) for key, alias in zip(staged.record.keys, _aliases(staged), strict=True)]


def _only(side: DataFrame, chosen: DataFrame, keys: list[str]) -> DataFrame:
    return side.join(chosen, keys, "left_semi")


def _numbered(side: DataFrame, keys: list[str], *order: Column) -> DataFrame:
    window = Window.partitionBy(*keys).orderBy(*order)
    return side.withColumn("nth", F.row_number().over(window))


def _shown(staged: StagedSlice, row: Mapping[str, object]) -> str:
    names = zip(staged.record.keys, _aliases(staged), strict=True)
    return ", ".join(f"{name}={row[alias]!r}" for name, alias in names)


def _change(marker: int | None) -> str:
    return "missing" if marker is None else Marker(marker).name if marker in set(Marker) else f"marker {marker}"
