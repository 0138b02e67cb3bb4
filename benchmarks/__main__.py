"""Encoding and publishing a slice, beside Spark's own unsorted dump of the same feed.

Prints medians and ratios, then the physical plan of the encoder.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.contest import interleaved, report
from benchmarks.source import make_source
from mirror_assets.config import load_config
from mirror_assets.delta.feed import landing_rows
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.reader import read_changes, read_changes_public
from mirror_assets.delta.session import open_session, spark_settings
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.columns import landed_columns
from mirror_assets.mirroring.encode import feed_slice
from mirror_assets.mirroring.planning import plan_snapshot, plan_table
from mirror_assets.mirroring.run import mirror_slice
from mirror_assets.mirroring.stage import stage_slice
from mirror_assets.mirroring.work import TableWork
from mirror_assets.mirroring.zone import open_zone

_DUMP, _FAST_DUMP = "dump of readChangeFeed", "dump of the vectorised reader"
_PLAN_WIDTH = 150
_TABLE = TableName("bench", "flights")
_CONFIG = """\
landing_zone: {{path: ./landing}}
mirror: {{path: ./mirror}}
defaults:
  slices: {{max_rows: 100_000_000}}
tables:
  bench.flights: {{source: {uri}, keys: [id]}}
"""


class Bench:
    """One source, and a landing zone for each run that is measured: version 0, which is empty, has landed there."""

    def __init__(self, spark: SparkSession, folder: Path, uri: str) -> None:
        """Land version 0 once; what is measured starts from copies of that zone."""
        self._spark, self._folder, self._uri = spark, folder, uri
        self.last = SourceLog(uri).state().version
        work = self._work("begun")
        mirror_slice(work, work.log.state(), plan_snapshot(work, life=1, version=0)[0][0])

    def contestants(self) -> dict[str, Callable[[int], None]]:
        """What is compared, by name."""
        return {
            _DUMP: lambda turn: self._dump(read_changes_public, f"dump-{turn}"),
            _FAST_DUMP: lambda turn: self._dump(read_changes, f"fast-{turn}"),
            "encode and stage": lambda turn: self._run(f"staged-{turn}", _stage),
            "encode, stage and publish": lambda turn: self._run(f"published-{turn}", _publish),
            "encode, stage, check and publish": lambda turn: self._run(f"mirrored-{turn}", _mirror),
        }

    def plan(self) -> str:
        """The physical plan of the encoder."""
        work = self._work("begun")
        (planned,) = plan_table(work).slices
        feed = feed_slice(work.table, planned, landed_columns(planned.schema))
        frame = landing_rows(read_changes(self._spark, self._uri, feed.first, feed.last), feed, {})
        text: str = frame._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 there is no public way
        return "\n".join(f"{line[:_PLAN_WIDTH]}…" for line in text.splitlines() if line.strip())

    def rows(self) -> int:
        """Rows of the feed after version 0."""
        counted: int = read_changes(self._spark, self._uri, 1, self.last).count()
        return counted

    def _dump(self, read: Callable[[SparkSession, str, int, int], DataFrame], name: str) -> None:
        target = self._folder / name
        read(self._spark, self._uri, 1, self.last).write.option("compression", "zstd").parquet(str(target))
        shutil.rmtree(target)

    def _run(self, name: str, measured: Callable[[TableWork], None]) -> None:
        shutil.copytree(self._folder / "begun", self._folder / name)
        measured(self._work(name))
        shutil.rmtree(self._folder / name)

    def _work(self, name: str) -> TableWork:
        root = self._folder / name
        root.mkdir(exist_ok=True)
        (root / "mirror.yaml").write_text(_CONFIG.format(uri=self._uri))
        config = load_config(root / "mirror.yaml")
        store = open_zone(config.landing_zone)
        return TableWork(config, config.table(_TABLE), SourceLog(self._uri), store, lambda: self._spark)


def _staged(work: TableWork) -> SliceRecord:
    plan = plan_table(work)
    (planned,) = plan.slices
    return stage_slice(work, planned, plan.footing)


def _stage(work: TableWork) -> None:
    _staged(work)


def _publish(work: TableWork) -> None:
    drive(publish(work.name, _staged(work), checks=()), work.store)


def _mirror(work: TableWork) -> None:
    plan = plan_table(work)
    (planned,) = plan.slices
    mirror_slice(work, plan.state, planned)


def main() -> None:
    """Make the source, run the rounds, print what they took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the feed, about (default: 4,000,000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count (default: 5)")
    options = parser.parse_args()
    spark = open_session(spark_settings())
    with tempfile.TemporaryDirectory(prefix="mirror-bench-") as folder:
        uri = make_source(spark, Path(folder), options.rows)
        bench = Bench(spark, Path(folder), uri)
        print(f"{bench.rows():,} feed rows in {bench.last} commits, medians of {options.rounds} interleaved rounds")
        print(report(interleaved(bench.contestants(), options.rounds), _DUMP))
        print(f"\nThe encoder's physical plan:\n{bench.plan()}")
    spark.stop()


if __name__ == "__main__":
    main()
