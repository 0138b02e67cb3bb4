"""A slice of a large table, a share of whose rows has changed: by each way of changes, beside a full diff.

Changed rows are scattered over all files; in one case they lie together in one.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from benchmarks.source import load_table
from mirror_assets.config.setting_values import Changes
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.delta_reader import read_version

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


class _Contest:
    """The slice of the newest commit by each way, and the full diff, in turns; each slice lands in its own zone."""

    def __init__(self, bench: Bench, uri: str, name: str) -> None:
        """Compare the ways, and what the plan of each forecasts."""
        self._bench, self._uri, self._folder = bench, uri, bench.folder / "contest"
        self._last = DeltaLog(uri).state().version
        contestants = {changes.value: partial(self._land, changes) for changes in _WAYS}
        contestants[_FULL_DIFF] = partial(_full_diff, bench.spark, uri, self._last, self._folder)
        # At full size a round takes minutes, so there is one, and none to warm up: compare orders of magnitude.
        costs = interleaved(bench.meter, contestants, rounds=bench.size(2, 1), warming=bench.size(1, 0))
        self.case = Case(name, costs, _FULL_DIFF)
        planned = ((changes, plan_table(self._table(changes, "plan").context()).slices[-1]) for changes in _WAYS)
        forecasts = (f"{changes.value} {one.bytes / (1 << 20):,.0f} MiB" for changes, one in planned)
        self.note = f"  {name}: forecast to read: {', '.join(forecasts)}"
        shutil.rmtree(self._folder)

    def _table(self, changes: Changes, name: str) -> BenchTable:
        settings = f"keys: [id], changes: {changes.value}, start: {{version: {self._last}}}"
        return BenchTable(self._bench.spark, self._folder / f"{changes.value}-{name}", self._uri, settings)

    def _land(self, changes: Changes, turn: int) -> None:
        self._table(changes, str(turn)).land()


def run(bench: Bench) -> Outcome:
    """Measure each case after the one before it, in a table of its kind."""
    rows = bench.size(1_000_000, 20_000_000)
    contests, tables = list[_Contest](), dict[str, str]()
    for kind, which, share in _CASES:
        if kind not in tables:
            tables[kind] = str(bench.folder / kind.replace(" ", "-"))
            load_table(bench.spark, tables[kind], rows, vectors=kind == "deletion vectors")
        bench.spark.sql(f"UPDATE delta.`{tables[kind]}` SET delay = delay + 1 WHERE {which.format(rows=rows)}")
        contests.append(_Contest(bench, tables[kind], f"{share} of {rows:,} rows, {kind}"))
        print(contests[-1].case, contests[-1].note, sep="\n", flush=True)
    return Outcome("by-way", [contest.case for contest in contests], notes=[contest.note for contest in contests])
