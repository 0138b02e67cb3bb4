"""The plan: of ten thousand commits that wait, and of one after a long history. No Spark.

Beside it what any plan has to do at least: to parse the log entries that wait, or to open the table with delta-rs.
"""

from __future__ import annotations

import json
from pathlib import Path

from deltalake import DeltaTable

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from benchmarks.synthetic_log import Log
from mirror_assets.pipeline.plan import plan_table

_PLAN, _PARSE, _OPEN = "plan", "limit: entries parsed as JSON", "limit: opened by delta-rs"


def run(bench: Bench) -> Outcome:
    """Measure plans after a short history and a long one."""
    sizes = bench.size((100, 1_000), (100, 10_000))
    return Outcome("plan", [case for commits in sizes for case in _cases(bench, commits)])


def _cases(bench: Bench, commits: int) -> tuple[Case, Case]:
    """The same table once with all commits waiting, once with one after all others, which are covered."""
    log = Log(bench.folder / f"{commits}", commits)
    behind = BenchTable(bench.spark, bench.folder / f"n{commits}", log.uri, "keys: [id], start: latest")
    behind.land()
    log.commit()
    waiting = BenchTable(bench.spark, bench.folder / f"z{commits}", log.uri, "keys: [id], start: {version: 1}")
    whole = {_PARSE: lambda _: _parse(Path(log.uri)), _PLAN: lambda _: _plan(waiting)}
    newest = {_OPEN: lambda _: DeltaTable(log.uri), _PLAN: lambda _: _plan(behind)}
    return (
        Case(f"{commits:,} commits", interleaved(bench.meter, whole, bench.rounds), _PARSE, commits),
        Case(f"1 commit after {commits:,}", interleaved(bench.meter, newest, bench.rounds), _OPEN, commits),
    )


def _plan(table: BenchTable) -> None:
    for _ in plan_table(table.context()).slices:
        pass


def _parse(folder: Path) -> None:
    for entry in (folder / "_delta_log").glob("*.json"):
        for line in entry.read_bytes().splitlines():
            json.loads(line)
