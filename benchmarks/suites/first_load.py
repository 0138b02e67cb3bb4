"""A first load beside a plain copy of the table, at two sizes."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from benchmarks.source import load_table
from mirror_assets_tests.delta_reader import read_version

COPY, STAGED, MIRRORED = "plain copy", "encode and stage", "encode, check and publish"


def run(bench: Bench) -> Outcome:
    """Measure both sizes."""
    sizes = bench.size((200_000, 1_000_000), (2_000_000, 10_000_000))
    return Outcome("first load", [_case(bench, rows) for rows in sizes])


def _case(bench: Bench, rows: int) -> Case:
    folder = bench.folder / f"{rows}"
    uri = str(folder / "table")
    load_table(bench.spark, uri, rows, vectors=False)

    def zone(turn: int) -> BenchTable:
        root = folder / f"zone-{turn}"
        shutil.rmtree(root, ignore_errors=True)
        return BenchTable(bench.spark, root, uri, "keys: [id]")

    ways = {
        COPY: lambda turn: _copy(bench.spark, uri, folder / f"copy-{turn}"),
        STAGED: lambda turn: zone(turn).stage(),
        MIRRORED: lambda turn: zone(turn).land(),
    }
    costs = interleaved(bench.meter, ways, bench.rounds)
    shutil.rmtree(folder)
    return Case(f"{rows:,} rows", costs, COPY, rows, peers=(STAGED,))


def _copy(spark: SparkSession, uri: str, target: Path) -> None:
    read_version(spark, uri, 0).write.option("compression", "zstd").parquet(str(target))
    shutil.rmtree(target)
