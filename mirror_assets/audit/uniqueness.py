"""Checks on keys that occur more than once in a slice: what can't be true of a source without duplicate keys."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets.audit.finding import Finding
from mirror_assets.audit.repeats import MARKER, PLACE, VERSION, RepeatedKeys, follows_same, shown_key, shown_place
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.delta.columns import quoted
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.delta.versions import read_version
from mirror_assets.landing.format import SliceKind
from mirror_assets.markers import Marker

_SAMPLES = 5
_IMPOSSIBLE = {
    Marker.INSERT: "is inserted while it is there, so the source has two rows of it",
    Marker.UPDATE: "is updated twice in one commit, or while it is not there",
    Marker.DELETE: "is deleted twice in one commit, or while it is not there",
    Marker.UPSERT: "is upserted while it is not there",
}


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


def _too_many(staged: StagedSlice, counted: pa.Table, allowed: int) -> list[str]:
    twice = counted.filter(pc.field("rows") > allowed)
    problems = [
        f"key {shown_key(staged.record, row)} has {row['rows']} rows {_where(staged, allowed)}"
        for row in twice.slice(0, _SAMPLES).to_pylist()
    ]
    return [*problems, *_and_more(len(twice), "keys")]


def _impossible(staged: StagedSlice, repeated: RepeatedKeys) -> list[str]:
    """Rows whose marker can't follow that of the key's row before."""
    ordered = repeated.ordered
    before, after = ordered.slice(0, max(0, len(ordered) - 1)), ordered.slice(1)
    is_same = follows_same(ordered, repeated.keys).slice(1)
    was_there = pc.not_equal(before[MARKER], int(Marker.DELETE))
    inserts = pc.equal(after[MARKER], int(Marker.INSERT))
    is_again = pc.fill_null(pc.equal(before[VERSION], after[VERSION]), fill_value=False)
    wrong = after.filter(pc.and_(is_same, pc.or_(is_again, pc.equal(was_there, inserts))))
    problems = [
        f"key {shown_key(staged.record, row)} {_IMPOSSIBLE[Marker(row[MARKER])]}: {shown_place(staged, row[PLACE])}"
        for row in wrong.slice(0, _SAMPLES).to_pylist()
    ]
    return [*problems, *_and_more(len(wrong), "rows")]


def _where(staged: StagedSlice, commits: int) -> str:
    if staged.record.kind is SliceKind.APPENDS:
        return "that were appended"
    return f"in {commits} commit{'s' if commits > 1 else ''}"


def _and_more(found: int, things: str) -> list[str]:
    return [f"and {found - _SAMPLES} more {things}"] if found > _SAMPLES else []
