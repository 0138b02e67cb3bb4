"""The check on order: keys whose markers would also allow another order are compared with the feed, read anew.

An INSERT comes before an UPDATE of its key, and an UPDATE before a DELETE; `key_uniqueness` has seen to that. Of a key
with other changes only the feed can tell: its n-th row in the parts must be its n-th change by commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.audit.finding import Finding
from mirror_assets.audit.key_codes import codes_of
from mirror_assets.audit.key_look import SAMPLES, KeyLook
from mirror_assets.audit.keyed_rows import MARKER, PLACE, VERSION, aliases
from mirror_assets.audit.repeats import shown_key, shown_place
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.delta.columns import LandedColumn, landed_value, quoted
from mirror_assets.delta.feed_columns import COMMIT_VERSION, is_new_row
from mirror_assets.delta.reader import read_changes
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.markers import ROW_MARKER, Marker

_NTH = "nth"


@dataclass(frozen=True)
class Feed:
    """Where the feed of a slice can be read again."""

    uri: str
    columns: tuple[LandedColumn, ...]
    vector_versions: tuple[int, ...] = ()


def row_order(spark: Callable[[], SparkSession], staged: StagedSlice, look: KeyLook, feed: Feed) -> Finding:
    """Keys with several changes appear in commit order, where their markers would also allow another order.

    A session starts only when there are such keys: the order of different keys is free. Values are read only where a
    key is updated twice: nothing else tells these rows apart. Raises what `spark_error` makes of Spark's exceptions.
    """
    rows = look.undecided
    keys = rows.group_by(aliases(staged.record)).aggregate([]) if rows else None
    figures: dict[str, int | float | str] = {
        "repeated_keys": look.repeated,
        "keys_compared": len(keys) if keys else 0,
    }
    if not rows:
        return Finding("row_order", (), figures)
    with spark_errors(f"{staged.record.table}, comparing staged parts with the feed of {feed.uri}"):
        by_values = feed if look.updated_twice else replace(feed, columns=())
        found = _found(spark(), staged, by_values, rows)
        expected = _expected(spark(), staged, by_values, keys)
    wrong = _differences(found, expected, aliases(staged.record)).slice(0, SAMPLES).to_pylist()
    problems = tuple(
        f"key {shown_key(staged.record, row)}: its change number {row['nth']} is "
        f"{_change(row['found_marker'])} in {_place(staged, row['place'])}, "
        f"and {_change(row['wanted_marker'])} at version {row['version']} in the feed"
        for row in wrong
    )
    return Finding("row_order", problems, figures)


def _place(staged: StagedSlice, place: int | None) -> str:
    return "no part" if place is None else shown_place(staged, place)


def _differences(found: pa.Table, expected: pa.Table, keys: list[str]) -> pa.Table:
    """Changes of these keys whose marker, or values, differ between parts and feed."""
    of_keys = pa.schema([found.schema.field(key) for key in keys])
    named = expected.select(keys).cast(of_keys)
    for name in (VERSION, "wanted_marker", "wanted_hash"):
        named = named.append_column(name, expected[name])
    both = _numbered(found, keys).join(_numbered(named, keys), [*keys, _NTH], join_type="full outer")
    same = pc.and_(
        _are_same(both["found_marker"], both["wanted_marker"]), _are_same(both["found_hash"], both["wanted_hash"])
    )
    return both.filter(pc.invert(same)).sort_by([(name, "ascending") for name in (*keys, _NTH)])


def _are_same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether values are equal, or both missing."""
    return pc.or_(pc.fill_null(pc.equal(one, other), fill_value=False), pc.and_(pc.is_null(one), pc.is_null(other)))


def _numbered(rows: pa.Table, keys: list[str]) -> pa.Table:
    """The rows, which come in their order, by key, and the number that each is of its key's, from 1."""
    if not len(rows):
        return rows.append_column(_NTH, pa.array([], pa.int64()))
    index, follows = codes_of(rows, keys).in_order()
    starts = np.flatnonzero(~follows)
    nth = np.arange(1, len(index) + 1) - np.repeat(starts, np.diff(starts, append=len(index)))
    return rows.take(pa.array(index)).append_column(_NTH, pa.array(nth))


def _found(spark: SparkSession, staged: StagedSlice, feed: Feed, rows: pa.Table) -> pa.Table:
    """Rows of the parts, in order: keys, marker, place, and a hash of the values if they are to be compared."""
    names = [*aliases(staged.record), "found_marker", PLACE]
    known = rows.select([*aliases(staged.record), MARKER, PLACE]).rename_columns(names)
    if not feed.columns:
        return known.append_column("found_hash", pa.nulls(len(known), pa.int64()))
    places = spark.createDataFrame(known.select([PLACE]))
    written = spark.read.parquet(staged.copies.spark_path(staged.record.folder.parts))
    file = written.metadataColumn("_metadata")  # also where the source has a column of this name
    place = _rows_before(staged, file.getField("file_name")) + file.getField("row_index")
    deleted = F.col(ROW_MARKER) == int(Marker.DELETE)
    values = F.xxhash64(*(F.col(quoted(column.name)) for column in feed.columns))
    parts = written.where(file.getField("file_name").isin(list(staged.rows_before)))
    hashes = parts.select(place.alias(PLACE), F.when(~deleted, values).alias("found_hash"))
    hashed = hashes.join(F.broadcast(places), PLACE).toArrow()
    return known.join(hashed, PLACE).sort_by(PLACE)


def _rows_before(staged: StagedSlice, file: Column) -> Column:
    """The number of rows in the parts before the one of this name."""
    before = staged.rows_before.items()
    return F.element_at(F.create_map(*(F.lit(value) for pair in before for value in pair)), file)


def _expected(spark: SparkSession, staged: StagedSlice, feed: Feed, chosen: pa.Table) -> pa.Table:
    """One row per key and commit of the feed, in order: the marker that must have landed, and a hash likewise."""
    key, only = staged.record.key, F.broadcast(spark.createDataFrame(chosen))
    is_new = is_new_row()
    changes = read_changes(spark, feed.uri, key.first, key.last, feed.vector_versions)
    values = F.xxhash64(*(landed_value(column, changes) for column in feed.columns))
    new_hash = F.when(is_new, values) if feed.columns else F.lit(None).cast("bigint")
    rows = _only(changes, staged, only).select(
        *_keys(staged), F.col(COMMIT_VERSION).alias(VERSION), is_new.alias("new"), new_hash.alias("hash")
    )
    by = [*aliases(staged.record), VERSION]
    grouped = rows.toArrow().group_by(by).aggregate([("new", "max"), ("new", "min"), ("hash", "max")]).sort_by(VERSION)
    has_new, has_old = grouped["new_max"], pc.invert(grouped["new_min"])
    update = pc.if_else(has_old, int(Marker.UPDATE), int(Marker.INSERT))
    marker = pc.if_else(has_new, update, int(Marker.DELETE)).cast(pa.int32())
    wanted = grouped.select(by).append_column("wanted_marker", marker)
    return wanted.append_column("wanted_hash", grouped["hash_max"])


def _keys(staged: StagedSlice) -> list[Column]:
    record = staged.record
    return [F.col(quoted(key)).alias(alias) for key, alias in zip(record.keys, aliases(record), strict=True)]


def _only(rows: DataFrame, staged: StagedSlice, chosen: DataFrame) -> DataFrame:
    """Rows of the chosen keys, before anything is computed of them."""
    pairs = zip(staged.record.keys, aliases(staged.record), strict=True)
    is_chosen = [rows[quoted(key)] == chosen[alias] for key, alias in pairs]
    return rows.join(chosen, is_chosen, "left_semi")


def _change(marker: int | None) -> str:
    return "missing" if marker is None else Marker(marker).name if marker in set(Marker) else f"marker {marker}"
