"""Checks on keys that occur more than once in a slice: what can't be true of a source without duplicate keys."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets.audit.finding import Finding
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.delta.columns import quoted
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.delta.versions import read_version
from mirror_assets.landing.format import SliceKind, SliceRecord, StagedPart
from mirror_assets.markers import ROW_MARKER, Marker

_SAMPLES = 5
_MARKER, _PLACE, _VERSION = "marker", "place", "version"
_NONE = pa.table({"rows": pa.array([], pa.int64())})
_IMPOSSIBLE = {
    Marker.INSERT: "is inserted while it is there, so the source has two rows of it",
    Marker.UPDATE: "is updated twice in one commit, or while it is not there",
    Marker.DELETE: "is deleted twice in one commit, or while it is not there",
    Marker.UPSERT: "is upserted while it is not there",
}


def aliases(record: SliceRecord) -> list[str]:
    """Names for the key columns that no other column here has, whatever the source calls them."""
    return [f"key{index}" for index in range(len(record.keys))]


def shown_key(record: SliceRecord, row: Mapping[str, object]) -> str:
    """The key of a row that has it by `aliases`, as readable text."""
    return ", ".join(f"{name}={row[alias]!r}" for name, alias in zip(record.keys, aliases(record), strict=True))


@dataclass(frozen=True)
class RepeatedKeys:
    """Keys that occur in more than one row of a slice's parts, in columns `key0` … of both tables.

    `counted` has each key once, and its number of `rows`; `every` has all rows of the parts: the `version` that each
    is of, where its part holds no other, and its `marker` where the parts have markers.
    """

    counted: pa.Table
    every: pa.Table

    def __len__(self) -> int:
        """The number of keys."""
        return len(self.counted)


def repeated_keys(staged: StagedSlice) -> RepeatedKeys:
    """The keys that occur in more than one row of the slice's parts; none where the slice has no keys."""
    keys = aliases(staged.record)
    columns = dict(zip(staged.record.keys, keys, strict=True))
    if staged.record.kind.has_markers:
        columns[ROW_MARKER] = _MARKER
    tables = [_columns(staged, part, columns) for part in staged.record.parts] if keys else []
    if not tables:
        return RepeatedKeys(_NONE, _NONE)
    every = pa.concat_tables(tables)
    counted = every.group_by(keys).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    return RepeatedKeys(counted.rename_columns([*keys, "rows"]), every)


def key_uniqueness(staged: StagedSlice, repeated: RepeatedKeys, data_commits: int) -> Finding:
    """At most one change per key and commit, and none that can't follow the one before it.

    A key can't have more rows than the slice has commits with data. It can't be inserted while it is there, nor changed
    or deleted while it isn't: then the source has two rows of one key, or changes are in a wrong order.
    """
    is_changes = staged.record.kind is SliceKind.CHANGES
    allowed = data_commits if is_changes else 1
    problems = _too_many(staged, repeated.counted, allowed)
    if is_changes and len(repeated) and not problems:
        problems = _impossible(staged, repeated)
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


def _columns(staged: StagedSlice, part: StagedPart, columns: Mapping[str, str]) -> pa.Table:
    """Columns of the part under other names, and the commit that it holds, or NULL."""
    with staged.open(staged.path(part.name)) as file:
        table = file.read(list(columns)).select(list(columns)).rename_columns(list(columns.values()))
    return table.append_column(_VERSION, pa.repeat(pa.scalar(part.version, pa.int64()), len(table)))


def _too_many(staged: StagedSlice, counted: pa.Table, allowed: int) -> list[str]:
    twice = counted.filter(pc.field("rows") > allowed)
    problems = [
        f"key {shown_key(staged.record, row)} has {row['rows']} rows {_where(staged, allowed)}"
        for row in twice.slice(0, _SAMPLES).to_pylist()
    ]
    return [*problems, *_and_more(len(twice), "keys")]


def _impossible(staged: StagedSlice, repeated: RepeatedKeys) -> list[str]:
    """Rows whose marker can't follow that of the key's row before."""
    keys = aliases(staged.record)
    place = pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(repeated.every))), 1)
    placed = repeated.every.append_column(_PLACE, place)
    rows = placed.join(repeated.counted.select(keys), keys, join_type="left semi")
    ordered = rows.sort_by([(name, "ascending") for name in (*keys, _PLACE)]).combine_chunks()
    before, after = ordered.slice(0, max(0, len(ordered) - 1)), ordered.slice(1)
    is_same = reduce(pc.and_, (pc.equal(before[key], after[key]) for key in keys))
    was_there = pc.not_equal(before[_MARKER], int(Marker.DELETE))
    inserts = pc.equal(after[_MARKER], int(Marker.INSERT))
    is_again = pc.fill_null(pc.equal(before[_VERSION], after[_VERSION]), fill_value=False)
    wrong = after.filter(pc.and_(is_same, pc.or_(is_again, pc.equal(was_there, inserts))))
    problems = [
        f"key {shown_key(staged.record, row)} {_IMPOSSIBLE[Marker(row[_MARKER])]}: {_place(staged, row[_PLACE])}"
        for row in wrong.slice(0, _SAMPLES).to_pylist()
    ]
    return [*problems, *_and_more(len(wrong), "rows")]


def _place(staged: StagedSlice, place: int) -> str:
    ends = list(accumulate(part.markers.total for part in staged.record.parts))
    index = bisect_right(ends, place)
    return f"row {place - (ends[index - 1] if index else 0)} of {staged.record.parts[index].name}"


def _where(staged: StagedSlice, commits: int) -> str:
    if staged.record.kind is SliceKind.APPENDS:
        return "that were appended"
    return f"in {commits} commit{'s' if commits > 1 else ''}"


def _and_more(found: int, things: str) -> list[str]:
    return [f"and {found - _SAMPLES} more {things}"] if found > _SAMPLES else []
