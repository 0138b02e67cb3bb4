"""Work in a process of its own, as a scheduled run is: nothing is warm, and memory is its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.bench_table import BenchTable
from benchmarks.meter import Cost, Meter
from mirror_assets.encode.session import open_session, spark_settings
from mirror_assets_tests.delta_reader import read_changes


@dataclass(frozen=True)
class Alone:
    """What it cost: seconds until a Spark session was there, and the landing behind that."""

    start_seconds: float
    cost: Cost


def land_alone(table: BenchTable) -> Alone:
    """Land the table's pending slices in a new process, with the settings that users have."""
    return _alone("land", str(table.root), table.uri, table.settings)


def dump_alone(uri: str, version: int, folder: Path) -> Alone:
    """What a plain dump of a commit's feed costs there."""
    return _alone("dump", uri, str(version), str(folder))


def _alone(*arguments: str) -> Alone:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.alone", *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    told = json.loads(ended.stdout.splitlines()[-1])
    return Alone(told["start_seconds"], Cost(**told["cost"]))


def _land(spark: SparkSession, root: str, uri: str, settings: str) -> None:
    BenchTable(spark, Path(root), uri, settings).land()


def _dump(spark: SparkSession, uri: str, version: str, folder: str) -> None:
    read_changes(spark, uri, int(version), int(version)).write.parquet(folder)


def main(context: str, *arguments: str) -> None:
    """Do the work, and print what it cost as JSON."""
    began = time.perf_counter()
    spark = open_session(spark_settings())
    started = time.perf_counter() - began
    done = {"land": _land, "dump": _dump}[context]
    cost = Meter(spark).measured(lambda: done(spark, *arguments))
    print(json.dumps(asdict(Alone(started, cost))))


if __name__ == "__main__":
    main(*sys.argv[1:])
