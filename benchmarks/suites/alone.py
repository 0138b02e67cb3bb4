"""Runs in processes of their own: how long a cold start takes, and how much memory slices of several sizes need."""

from __future__ import annotations

import shutil
from statistics import median

from benchmarks.alone import Alone, dump_alone, land_alone
from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.result import Case, Goal, Outcome
from benchmarks.suites.changes import Changes
from benchmarks.suites.small import change, make_small

_DUMP, _COLD, _LAND = "raw dump", "encode, check and publish", "one slice"


def run(bench: Bench) -> Outcome:
    """Measure a small slice from a cold start, and large slices."""
    cold, starts = _cold(bench)
    sized = [_slice(bench, rows) for rows in bench.size((100_000, 400_000), (1_000_000, 4_000_000, 20_000_000))]
    small, large = (case.ways[_LAND][0] for case in (sized[0], sized[-1]))
    return Outcome(
        "alone",
        [cold, *sized],
        [
            Goal("cold, behind Spark's start", cold.seconds(_COLD), 1, "s"),
            Goal("memory of Python, largest slice of smallest", large.python_peak / small.python_peak, 1.5),
            Goal("memory of the JVM, largest slice of smallest", large.jvm_peak / small.jvm_peak, 1.5),
        ],
        [f"  Spark's start: {median(starts):.2f} s ({min(starts):.2f} to {max(starts):.2f})"],
    )


def _cold(bench: Bench) -> tuple[Case, list[float]]:
    """A commit of 100 feed rows, dumped and landed by processes that start for it; Spark's starts in seconds."""
    table = BenchTable(bench.spark, bench.folder / "zone", make_small(bench.folder / "orders"), "keys: [id]")
    table.land()
    dumps: list[Alone] = []
    lands: list[Alone] = []
    for turn in range(bench.size(2, 5)):
        change(table.uri, turn)
        dumps.append(dump_alone(table.uri, turn + 1, bench.folder / f"dump-{turn}"))
        lands.append(land_alone(table))
    ways = {_DUMP: tuple(alone.cost for alone in dumps), _COLD: tuple(alone.cost for alone in lands)}
    return Case("a commit of 100 feed rows, in a new process", ways, _DUMP), [
        alone.start_seconds for alone in (*dumps, *lands)
    ]


def _slice(bench: Bench, rows: int) -> Case:
    """One slice of so many feed rows."""
    changes = Changes(bench, rows)
    alone = land_alone(changes.begun.copied(changes.folder / "alone"))
    shutil.rmtree(changes.folder)
    return Case(f"{rows:,} feed rows, in a new process", {_LAND: (alone.cost,)}, _LAND)
