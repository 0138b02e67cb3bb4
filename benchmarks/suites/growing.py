"""How the time of one slice grows: with the rows of its feed, with columns, and with files."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from benchmarks.suites.changes import LIMIT, MIRRORED, RAW, Changes
from benchmarks.suites.small import FEED

# So large that one round must do, on a session that is warm by then.
_HUGE = 10_000_000
_SMALL = (25_000, 50_000, 100_000, 200_000, 400_000)
_FULL = (1_000_000, 2_000_000, 4_000_000, 16_000_000, 50_000_000)


def run(bench: Bench) -> Outcome:
    """Measure slices of several sizes, widths and numbers of files."""
    rows = bench.size(_SMALL, _FULL)
    columns, files = bench.size((10, 40), (10, 50, 200)), bench.size((10, 100), (10, 100, 1_000))
    fixed = bench.size(20_000, 200_000)
    return Outcome(
        "growing",
        [
            *(_of_rows(bench, each) for each in rows),
            *(_of_shape(bench, fixed, each, 4, f"{fixed:,} updated rows of {each} columns") for each in columns),
            *(_of_shape(bench, fixed, 10, each, f"{fixed:,} updated rows in {each:,} files") for each in files),
        ],
    )


def _of_rows(bench: Bench, rows: int) -> Case:
    changes = Changes(bench, rows)
    ways = changes.ways()
    chosen = {name: ways[name] for name in (RAW, LIMIT, MIRRORED)}
    is_huge = rows > _HUGE
    costs = interleaved(bench.meter, chosen, 1 if is_huge else bench.size(2, 3), 0 if is_huge else 1)
    shutil.rmtree(changes.folder)
    return Case(f"{rows:,} feed rows, growing", costs, RAW, rows, peers=(LIMIT,))


def _of_shape(bench: Bench, rows: int, columns: int, files: int, name: str) -> Case:
    """A slice of one commit that updates every row of a table of so many columns and files."""
    folder = bench.folder / f"{columns}-{files}"
    uri = _updated(bench.spark, folder, rows, columns, files)

    def land(turn: int) -> None:
        BenchTable(bench.spark, folder / f"zone-{turn}", uri, "keys: [id], start: {version: 1}").land()

    costs = interleaved(bench.meter, {MIRRORED: land}, bench.size(2, 3))
    shutil.rmtree(folder)
    return Case(name, costs, MIRRORED)


def _updated(spark: SparkSession, folder: Path, rows: int, columns: int, files: int) -> str:
    uri = str(folder / "wide")
    values = [f"CAST(hash(id, {column}) % 1000 AS DOUBLE) AS c{column}" for column in range(columns - 1)]
    spark.range(0, rows, 1, files).selectExpr("id", *values).write.format("delta").options(**FEED).save(uri)
    spark.sql(f"UPDATE delta.`{uri}` SET c0 = c0 + 1")
    return uri
