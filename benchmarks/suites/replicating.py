"""The local stand-in for Fabric's replicator: changes of one table applied, beside reading its files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.meter import Cost
from benchmarks.result import Case, Outcome
from benchmarks.source import make_source
from mirror_assets.standin.replicator import LocalReplicator

_READ, _POLL = "limit: files read by pyarrow", "poll"


def run(bench: Bench) -> Outcome:
    """Measure one poll over all landing files of a table, from nothing."""
    uri = make_source(bench.spark, bench.folder, bench.size(400_000, 4_100_000))
    table = BenchTable(bench.spark, bench.folder / "begun", uri, "keys: [id], start: {version: 1}")
    changes = table.land()
    costs: dict[str, list[Cost]] = {_READ: [], _POLL: []}
    for turn in range(bench.rounds):
        zone = table.copied(bench.folder / f"zone-{turn}")
        store = zone.context().config.zone.open()
        replicator = LocalReplicator(store, zone.root / "mirror")
        costs[_READ].append(bench.meter.measured(lambda: _read(zone.root / "landing")))  # noqa: B023 called at once
        costs[_POLL].append(bench.meter.measured(replicator.poll))
        applied = sum(status.processed_rows for status in replicator.status())
        if applied != changes:
            raise RuntimeError(f"{applied} of {changes} changes were applied")
        shutil.rmtree(zone.root)
    ways = {way: tuple(taken) for way, taken in costs.items()}
    return Outcome("replicator", [Case(f"{changes:,} changes", ways, _READ, changes)])


def _read(landing: Path) -> None:
    for file in landing.rglob("*.parquet"):
        pq.read_table(file)
