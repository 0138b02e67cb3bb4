"""A slice by row tracking, and by files, of a large table of which little has changed, beside a full diff.

A thousandth of the rows is updated: rows that lie together in one file, then rows that are scattered over all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from mirror_assets.encode.private.table_version import read_version
from mirror_assets.source.log import DeltaLog

_PER_MILLE, _FILES = 1000, 32
_COLUMNS = (
    "id",
    "substr(hex(hash(id % 16)), 1, 2) AS carrier",
    "CAST(id % 6000 AS INT) AS flight",
    "concat('N', hash(id % 4000)) AS tailnum",
    "timestamp_seconds(1356998400 + id * 60) AS departure",
    "CAST(hash(id) % 120 AS DOUBLE) AS delay",
    "CAST(abs(hash(id + 2)) % 4000 AS INT) AS distance",
    "CAST(abs(hash(id + 3)) % 100000 / 100 AS DECIMAL(10, 2)) AS air_time",
)


def _load(spark: SparkSession, uri: str, rows: int, *, vectors: bool) -> None:
    """Version 0: all rows, in files of neighbouring ids."""
    rows_ = spark.range(0, rows, 1, _FILES).selectExpr(*_COLUMNS)
    options = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": str(vectors).lower()}
    rows_.write.format("delta").options(**options).save(uri)


def _full_diff(spark: SparkSession, uri: str, last: int, folder: Path) -> None:
    """What one writes without row tracking: both versions, joined by the key, rows that differ."""
    old, new = read_version(spark, uri, last - 1), read_version(spark, uri, last)
    columns = [name for name in new.columns if name != "id"]
    both = old.select("id", F.struct(*columns).alias("old")).join(
        new.select("id", F.struct(*columns).alias("new")), "id", "full_outer"
    )
    both.where(~F.col("old").eqNullSafe(F.col("new"))).select("id", "new.*").write.parquet(str(folder))


def _contest(bench: Bench, uri: str, name: str) -> Case:
    """The slice of the newest commit, and the full diff, in turns; each slice lands in a zone of its own."""
    last = DeltaLog(uri).state().version

    def land(changes: str, turn: int) -> None:
        settings = f"keys: [id], changes: {changes}, start: {{version: {last}}}"
        BenchTable(bench.spark, bench.folder / f"{name}-{changes}-{turn}", uri, settings).land()

    def diff(turn: int) -> None:
        _full_diff(bench.spark, uri, last, bench.folder / f"{name}-diff-{turn}")

    ways: dict[str, Callable[[int], object]] = {
        "row tracking": partial(land, "row_tracking"),
        "files": partial(land, "files"),
        "full diff": diff,
    }
    return Case(name, interleaved(bench.meter, ways, bench.size(2, 3)), "full diff")


def run(bench: Bench) -> Outcome:
    """Measure changes in one file and scattered ones, by deletion vectors and by rewritten files."""
    rows = bench.size(1_000_000, 10_000_000)
    cases = []
    for kind in ("deletion vectors", "rewritten files"):
        uri = str(bench.folder / kind)
        _load(bench.spark, uri, rows, vectors=kind == "deletion vectors")
        for where, which in (("one file", f"id < {rows // _PER_MILLE}"), ("scattered", f"id % {_PER_MILLE} = 7")):
            bench.spark.sql(f"UPDATE delta.`{uri}` SET delay = delay + 1 WHERE {which}")
            cases.append(_contest(bench, uri, f"a thousandth of {rows:,} rows, {where}, {kind}"))
    return Outcome("row tracking", cases)
