"""How the time of one slice grows with the rows of its feed."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from benchmarks.suites.changes import LIMIT, MIRRORED, RAW, Changes


def run(bench: Bench) -> Outcome:
    """Measure slices of several sizes."""
    cases = []
    for rows in bench.size((50_000, 100_000, 200_000), (500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)):
        ways = Changes(bench, rows).ways()
        chosen = {name: ways[name] for name in (RAW, LIMIT, MIRRORED)}
        cases.append(Case(f"{rows:,} feed rows", interleaved(bench.meter, chosen, bench.size(2, 3)), RAW, rows))
    return Outcome("growing", cases)
