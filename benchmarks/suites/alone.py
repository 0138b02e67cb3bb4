"""A small slice in a process of its own: how long it takes from a cold start."""

from __future__ import annotations

from statistics import median

from benchmarks.alone import Alone, dump_alone, land_alone
from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.result import Case, Outcome
from benchmarks.suites.small import change, make_small

_DUMP, _COLD = "raw dump", "encode, check and publish"


def run(bench: Bench) -> Outcome:
    """Measure a small slice from a cold start."""
    case, starts = _cold(bench)
    return Outcome(
        "alone",
        [case],
        notes=[f"  Spark's start: {median(starts):.2f} s ({min(starts):.2f} to {max(starts):.2f})"],
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
