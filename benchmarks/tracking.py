"""A slice by row tracking of a large table of which little has changed, beside a full diff of the two versions.

A thousandth of the rows is updated: rows that lie together in one file, then rows that are scattered over all.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.bench_table import BenchTable
from benchmarks.meter import Cost, measured, middle
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.session import open_session, spark_settings
from mirror_assets.delta.versions import read_version

_PER_MILLE, _FILES = 1000, 32
# Vectored reads are in none of Hadoop's counters.
_SETTINGS = {"spark.driver.memory": "6g", "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}
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


def _contest(spark: SparkSession, folder: Path, uri: str, rounds: int) -> str:
    """Medians of the slice of the newest commit, and of the full diff, in turns; each slice lands in its own zone."""
    last = SourceLog(uri).state().version
    settings = f"keys: [id], changes: row_tracking, start: {{version: {last}}}"
    ours: list[Cost[int]] = []
    diffs: list[Cost[None]] = []
    for turn in range(rounds):
        root = folder / f"{last}-{turn}"
        table, diff = BenchTable(spark, root, uri, settings), root / "diff"
        ours.append(measured(spark, table.land))
        diffs.append(measured(spark, partial(_full_diff, spark, uri, last, diff)))
    slice_ = middle(ours)
    return f"{slice_.result:,} rows landed\n  row tracking  {slice_}\n  full diff     {middle(diffs)}"


def main() -> None:
    """Make the sources, print what a slice of each took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tracking", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table (default: 10,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")
    options = parser.parse_args()
    spark = open_session(spark_settings(_SETTINGS))
    with tempfile.TemporaryDirectory(prefix="mirror-bench-") as place:
        for vectors in (True, False):
            folder = Path(place) / ("vectors" if vectors else "rewritten")
            uri, kind = str(folder / "orders"), "deletion vectors" if vectors else "rewritten files"
            _load(spark, uri, options.rows, vectors=vectors)
            for where, which in (
                ("one file", f"id < {options.rows // _PER_MILLE}"),
                ("scattered", f"id % {_PER_MILLE} = 7"),
            ):
                spark.sql(f"UPDATE delta.`{uri}` SET delay = delay + 1 WHERE {which}")
                print(f"{where}, {kind}: {_contest(spark, folder, uri, options.rounds)}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
