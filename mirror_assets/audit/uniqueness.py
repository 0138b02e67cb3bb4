"""Checks on keys that occur more than once in a slice: what can't be true of a source without duplicate keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets.audit.finding import CheckResult
from mirror_assets.audit.key_look import SAMPLES, KeyLook, Wrong
from mirror_assets.audit.keyed_rows import MARKER, PLACE
from mirror_assets.audit.repeats import shown_key, shown_place
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.delta.columns import quoted
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.delta.versions import read_version
from mirror_assets.landing.format import SliceKind
from mirror_assets.markers import Marker

_IMPOSSIBLE = {
    Marker.INSERT: "is inserted while it is there, so the source has two rows of it",
    Marker.UPDATE: "is updated twice in one commit, or while it is not there",
    Marker.DELETE: "is deleted twice in one commit, or while it is not there",
    Marker.UPSERT: "is upserted while it is not there",
}


def key_uniqueness(staged: StagedSlice, look: KeyLook) -> CheckResult:
    """At most one change per key and commit, and none that can't follow the one before it.

    A key can't have more rows than the slice has commits with data. It can't be inserted while it is there, nor changed
    or deleted while it isn't: then the source has two rows of one key, or changes are in a wrong order.
    """
    problems = _too_many(staged, look) or _impossible(staged, look.impossible)
    return CheckResult("key_uniqueness", tuple(problems), {"repeated_keys": look.repeated})


def version_uniqueness(spark: SparkSession, uri: str, version: int, keys: Sequence[str]) -> CheckResult:
    """The same of all rows of a version, of which a staged chunk holds some. Raises what `spark_error` gives."""
    columns = [F.col(quoted(key)).alias(f"key{index}") for index, key in enumerate(keys)]
    with spark_errors(f"the keys of {uri}"):
        counted = read_version(spark, uri, version).groupBy(*columns).agg(F.count(F.lit(1)).alias("rows"))
        twice = counted.where(F.col("rows") > 1).limit(SAMPLES).collect()
    problems = tuple(
        f"key {', '.join(f'{key}={value!r}' for key, value in zip(keys, row, strict=False))} has {row[-1]} rows"
        for row in twice
    )
    return CheckResult("key_uniqueness", problems)


def _too_many(staged: StagedSlice, look: KeyLook) -> list[str]:
    appended = staged.record.kind is SliceKind.APPENDS
    where = "that were appended" if appended else f"in {look.allowed} commit{'s' if look.allowed > 1 else ''}"
    keys = [f"key {shown_key(staged.record, row)} has {row['rows']} rows {where}" for row in _shown(look.too_many)]
    return [*keys, *_and_more(look.too_many, "keys")]


def _impossible(staged: StagedSlice, wrong: Wrong) -> list[str]:
    problems = [
        f"key {shown_key(staged.record, row)} {_IMPOSSIBLE[Marker(row[MARKER])]}: {shown_place(staged, row[PLACE])}"
        for row in _shown(wrong)
    ]
    return [*problems, *_and_more(wrong, "rows")]


def _shown(wrong: Wrong) -> Iterable[Mapping[str, Any]]:
    return () if wrong.samples is None else wrong.samples.to_pylist()


def _and_more(wrong: Wrong, things: str) -> list[str]:
    return [f"and {wrong.found - SAMPLES} more {things}"] if wrong.found > SAMPLES else []
