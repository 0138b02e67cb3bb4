"""Catching up: many small commits of one hot table, and many deletes by deletion vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from benchmarks.suites.small import FEED
from mirror_assets_tests.delta_reader import read_changes

_ROWS, _CHANGED = 10_000, 20
_FROM_ONE = "keys: [id], start: {version: 1}"


def run(bench: Bench) -> Outcome:
    """Measure both kinds of commits."""
    hot, fewer = bench.size((100, 200), (500, 1_000)), bench.size((10, 20), (30, 59, 118))
    uri = _hot_table(bench.folder, hot[-1])
    cases = [
        Case(
            f"{commits:,} commits of {_CHANGED} rows",
            interleaved(bench.meter, _ways(bench, uri, commits), bench.rounds),
            "ordered",
            commits,
        )
        for commits in hot
    ]
    deleted = _deleted_table(bench.spark, bench.folder, fewer[-1])
    vectors = [_vectors(bench, deleted, commits) for commits in fewer]
    return Outcome("catching up", [*cases, *vectors])


def _hot_table(folder: Path, commits: int) -> str:
    """A table of 10,000 rows, and so many commits behind version 0 that update 20 of its 1,000 hottest rows each."""
    uri = str(folder / "hot")
    ids = range(_ROWS)
    write_deltalake(uri, pa.table({"id": ids, "amount": [id_ / 2 for id_ in ids]}), configuration=FEED)
    table = DeltaTable(uri)
    for commit in range(commits):
        first = commit * 7 % (_ROWS // 10)
        table.update(updates={"amount": "amount + 1"}, predicate=f"id >= {first} AND id < {first + _CHANGED}")
    return uri


def _ways(bench: Bench, uri: str, commits: int) -> dict[str, Callable[[int], int]]:
    def way(name: str, settings: str) -> Callable[[int], int]:
        return lambda turn: BenchTable(bench.spark, bench.folder / f"{name}-{commits}-{turn}", uri, settings).land(
            commits
        )

    return {"ordered": way("ordered", _FROM_ONE), "compacted": way("compacted", f"{_FROM_ONE}, compact: true")}


def _deleted_table(spark: SparkSession, folder: Path, commits: int) -> str:
    """A table of one file, and so many commits behind version 0 that delete ten rows each by a deletion vector."""
    uri = str(folder / "deleted")
    rows = spark.range(0, commits * 1000, 1, 1).selectExpr("id", "id / 2 AS amount")
    rows.write.format("delta").options(**FEED, **{"delta.enableDeletionVectors": "true"}).save(uri)
    for commit in range(commits):
        spark.sql(f"DELETE FROM delta.`{uri}` WHERE id BETWEEN {commit * 1000} AND {commit * 1000 + 9}")
    return uri


def _vectors(bench: Bench, uri: str, commits: int) -> Case:
    """What landing so many of the deletes takes; beside it, once, what reading them by the public reader takes."""

    def land(turn: int) -> None:
        BenchTable(bench.spark, bench.folder / f"vectors-{commits}-{turn}", uri, _FROM_ONE).land(commits)

    costs = interleaved(bench.meter, {"land": land}, bench.rounds)
    feed = read_changes(bench.spark, uri, 1, commits)
    target = str(bench.folder / f"raw-{commits}")
    costs["readChangeFeed"] = (bench.meter.measured(lambda: feed.write.parquet(target)),)
    return Case(f"{commits} deletes by deletion vectors", costs, "readChangeFeed", commits)
