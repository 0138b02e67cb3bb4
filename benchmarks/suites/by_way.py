"""A slice of a large table, a share of whose rows has changed: by each way of changes, beside a full diff.

Changed rows are scattered over all files; in one case they lie together in one.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from benchmarks.source import load_table
from mirror_assets.config import Changes
from mirror_assets.encode.private.table_version import read_version
from mirror_assets.source.log import DeltaLog

_WAYS, _FULL_DIFF = (Changes.FEED, Changes.ROW_TRACKING, Changes.FILES), "full diff"
# How the source's writer keeps rows that stay, which rows it updates, and what those are called.
_CASES = (
    ("deletion vectors", "id < {rows} / 1000", "0.1 % in one file"),
    ("deletion vectors", "id % 100 = 7", "1 %"),
    ("rewritten files", "id % 100 = 7", "1 %"),
    ("rewritten files", "id % 10 = 7", "10 %"),
    ("rewritten files", "id % 2 = 1", "50 %"),
)


def _full_diff(spark: SparkSession, uri: str, last: int, folder: Path, turn: int) -> None:
    """What one writes without any of them: both versions, joined by the key, rows that differ."""
    old, new = read_version(spark, uri, last - 1), read_version(spark, uri, last)
    columns = [name for name in new.columns if name != "id"]
    both = old.select("id", F.struct(*columns).alias("old")).join(
        new.select("id", F.struct(*columns).alias("new")), "id", "full_outer"
    )
    both.where(~F.col("old").eqNullSafe(F.col("new"))).select("id", "new.*").write.parquet(str(folder / str(turn)))


def _contest(bench: Bench, uri: str, name: str) -> Case:
    """The slice of the newest commit by each way, and the full diff, in turns; each slice lands in its own zone."""
    last, folder = DeltaLog(uri).state().version, bench.folder / name

    def land(changes: Changes, turn: int) -> None:
        settings = f"keys: [id], changes: {changes.value}, start: {{version: {last}}}"
        BenchTable(bench.spark, folder / f"{changes.value}-{turn}", uri, settings).land()

    contestants = {changes.value: partial(land, changes) for changes in _WAYS}
    contestants[_FULL_DIFF] = partial(_full_diff, bench.spark, uri, last, folder)
    return Case(name, interleaved(bench.meter, contestants, bench.size(2, 3)), _FULL_DIFF)


def run(bench: Bench) -> Outcome:
    """Measure each case in a table of its own."""
    rows = bench.size(1_000_000, 20_000_000)
    cases = []
    for number, (kind, which, share) in enumerate(_CASES):
        uri = str(bench.folder / f"source-{number}")
        load_table(bench.spark, uri, rows, vectors=kind == "deletion vectors")
        bench.spark.sql(f"UPDATE delta.`{uri}` SET delay = delay + 1 WHERE {which.format(rows=rows)}")
        cases.append(_contest(bench, uri, f"{share} of {rows:,} rows, {kind}"))
        print(cases[-1], flush=True)
    return Outcome("by-way", cases)
