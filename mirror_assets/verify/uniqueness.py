"""Check that keys are unique in the source, by their rows in a slice: two live rows of a key can't be mirrored."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.columns import quoted
from mirror_assets.encode.private.table_version import read_version
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.landing.format import SliceKind
from mirror_assets.markers import Marker
from mirror_assets.row_values import shown_key
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.keys import MARKER, PLACE
from mirror_assets.verify.repeated_keys import ROWS, SAMPLES, KeyInspection, Violations, describe_key, describe_place
from mirror_assets.verify.staged import StagedSlice

_IMPOSSIBLE = {
    Marker.INSERT: "is inserted while it is there, so the source has two rows of it",
    Marker.UPDATE: "is updated twice in one commit, or while it is not there",
    Marker.DELETE: "is deleted twice in one commit, or while it is not there",
    Marker.UPSERT: "is upserted while it is not there",
}


def key_uniqueness(staged: StagedSlice, keys: KeyInspection) -> CheckResult:
    """Check that a key changes once in a commit at most, and that each change can follow the key's change before it.

    A key can't have more rows than the slice has commits with data. It can't be inserted while it exists, nor updated
    or deleted while it doesn't: then the source has two rows of the key, or the changes are in a wrong order.
    """
    problems = _too_many(staged, keys) or _impossible(staged, keys.impossible)
    return CheckResult("key_uniqueness", tuple(problems), {"repeated_keys": keys.repeated})


def version_uniqueness(spark: SparkSession, uri: str, version: int, keys: Sequence[str]) -> CheckResult:
    """Check all keys of a version, of which a staged chunk holds only some. Raises what `spark_errors` raises."""
    columns = [F.col(quoted(key)).alias(f"key{index}") for index, key in enumerate(keys)]
    with spark_errors(f"the keys of {uri}"):
        counted = read_version(spark, uri, version).groupBy(*columns).agg(F.count(F.lit(1)).alias("rows"))
        twice = counted.where(F.col("rows") > 1).limit(SAMPLES).collect()
    problems = tuple(f"key {shown_key(dict(zip(keys, row, strict=False)))} has {row[-1]} rows" for row in twice)
    return CheckResult("key_uniqueness", problems)


def _too_many(staged: StagedSlice, keys: KeyInspection) -> list[str]:
    appended = staged.record.kind is SliceKind.APPENDS
    where = "that were appended" if appended else f"in {keys.allowed} commit{'s' if keys.allowed > 1 else ''}"
    texts = (f"{describe_key(staged.record, row)} has {row[ROWS]} rows {where}" for row in keys.too_many.rows)
    return [*(f"key {text}" for text in texts), *_and_more(keys.too_many, "keys")]


def _impossible(staged: StagedSlice, wrong: Violations) -> list[str]:
    problems = []
    for row in wrong.rows:
        key, place = describe_key(staged.record, row), describe_place(staged, row[PLACE])
        problems.append(f"key {key} {_IMPOSSIBLE[Marker(row[MARKER])]}: {place}")
    return [*problems, *_and_more(wrong, "rows")]


def _and_more(wrong: Violations, things: str) -> list[str]:
    return [f"and {wrong.count - SAMPLES} more {things}"] if wrong.count > SAMPLES else []
