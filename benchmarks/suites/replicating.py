"""The local stand-in for Fabric's replicator: changes of one table applied in a second."""

from __future__ import annotations

import shutil

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.result import Case, Goal, Outcome
from benchmarks.source import make_source
from mirror_assets.standin.replicator import LocalReplicator


def run(bench: Bench) -> Outcome:
    """Measure one poll over all landing files of a table, from nothing."""
    uri = make_source(bench.spark, bench.folder, bench.size(400_000, 4_100_000))
    table = BenchTable(bench.spark, bench.folder / "begun", uri, "keys: [id], start: {version: 1}")
    changes = table.land()
    costs = []
    for turn in range(bench.rounds):
        zone = table.copied(bench.folder / f"zone-{turn}")
        store = zone.context().config.zone.open()
        replicator = LocalReplicator(store, zone.root / "mirror")
        costs.append(bench.meter.measured(replicator.poll))
        applied = sum(status.processed_rows for status in replicator.status())
        if applied != changes:
            raise RuntimeError(f"{applied} of {changes} changes were applied")
        shutil.rmtree(zone.root)
    case = Case(f"{changes:,} changes", {"poll": tuple(costs)}, "poll", changes)
    goal = Goal("changes applied in a second", changes / case.seconds("poll"), 500_000, "", least=True)
    return Outcome("replicator", [case], [goal])
