"""Catching up many small commits of one hot table, ordered and compacted; and many deletes by deletion vectors."""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from benchmarks.bench_table import BenchTable
from benchmarks.meter import Cost, measured, middle
from mirror_assets.delta.session import open_session, spark_settings

_ROWS, _CHANGED = 10_000, 20
_FEED = {"delta.enableChangeDataFeed": "true"}


def _hot_table(folder: Path, commits: int) -> str:
    """A table of 10,000 rows, and so many commits behind version 0 that update 20 of its 1,000 hottest rows each."""
    uri = str(folder / "hot")
    ids = range(_ROWS)
    write_deltalake(uri, pa.table({"id": ids, "amount": [id_ / 2 for id_ in ids]}), configuration=_FEED)
    table = DeltaTable(uri)
    for commit in range(commits):
        first = commit * 7 % (_ROWS // 10)
        table.update(updates={"amount": "amount + 1"}, predicate=f"id >= {first} AND id < {first + _CHANGED}")
    return uri


def _deleted_table(spark: SparkSession, folder: Path, commits: int) -> str:
    """A table of one file, and so many commits behind version 0 that delete ten rows each by a deletion vector."""
    uri = str(folder / "deleted")
    rows = spark.range(0, commits * 1000, 1, 1).selectExpr("id", "id / 2 AS amount")
    rows.write.format("delta").options(**_FEED, **{"delta.enableDeletionVectors": "true"}).save(uri)
    for commit in range(commits):
        spark.sql(f"DELETE FROM delta.`{uri}` WHERE id BETWEEN {commit * 1000} AND {commit * 1000 + 9}")
    return uri


def _hot(spark: SparkSession, folder: Path, commits: int, rounds: int) -> str:
    """A line for each way to land the hot table's commits, in turns."""
    uri = _hot_table(folder, commits)
    ways = {"ordered": "false", "compacted": "true"}
    costs: dict[str, list[Cost[int]]] = {way: [] for way in ways}
    for turn in range(rounds):
        for way, compact in ways.items():
            settings = f"keys: [id], start: {{version: 1}}, compact: {compact}"
            table = BenchTable(spark, folder / f"{way}-{turn}", uri, settings)
            costs[way].append(measured(spark, table.land))
    lines = (f"  {way:10} {middle(taken)}  {middle(taken).result:7,} rows landed" for way, taken in costs.items())
    return "\n".join([f"{commits:,} commits of {_CHANGED} rows each:", *lines])


def _vectors(spark: SparkSession, folder: Path, commits: int, rounds: int) -> str:
    """A line for a quarter, a half and all of the deletes: what the slice took, for each commit too; in turns."""
    uri = _deleted_table(spark, folder, commits)
    costs: dict[int, list[Cost[int]]] = {last: [] for last in (commits // 4, commits // 2, commits)}
    for turn in range(rounds):
        for last, taken in costs.items():
            table = BenchTable(spark, folder / f"vectors-{last}-{turn}", uri, "keys: [id], start: {version: 1}")
            taken.append(measured(spark, partial(table.land, last)))
    lines = [f"deletes by deletion vectors, {commits * 1000:,} rows in one file:"]
    for last, taken in costs.items():
        cost = middle(taken)
        lines.append(f"  {last:4} commits {cost}  {cost.seconds / last * 1000:7.1f} ms a commit")
    return "\n".join(lines)


def main() -> None:
    """Make the sources, print what catching up took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catch_up", description=__doc__)
    parser.add_argument("--commits", type=int, default=1000, help="small commits (default: 1,000)")
    parser.add_argument("--deletes", type=int, default=200, help="deletes by deletion vectors (default: 200)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each (default: 3)")
    options = parser.parse_args()
    spark = open_session(spark_settings())
    with tempfile.TemporaryDirectory(prefix="mirror-bench-") as place:
        folder = Path(place)
        print(_hot(spark, folder, options.commits, options.rounds), flush=True)
        print(_vectors(spark, folder, options.deletes, options.rounds), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
