"""The plan: of ten thousand commits that wait, and of one behind a long history. No Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.result import Case, Goal, Outcome
from mirror_assets.mirroring.planning import plan_table

_TIME_MS = 1_700_000_000_000
_PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "1000000"}


def make_log(folder: Path, commits: int) -> str:
    """The URI of a table with a commit file for each of so many appends, and a checkpoint; the data is not there."""
    uri, log = str(folder), folder / "_delta_log"
    write_deltalake(uri, pa.table({"id": [1]}), configuration=_PROPERTIES)
    lines = (log / f"{0:020d}.json").read_text(encoding="utf-8").splitlines()
    added = next(action["add"] for action in map(json.loads, lines) if "add" in action)
    for version in range(1, commits + 1):
        info = {"commitInfo": {"timestamp": _TIME_MS + version, "operation": "WRITE"}}
        actions = (info, {"add": {**added, "path": f"part-{version}.parquet"}})
        (log / f"{version:020d}.json").write_text("".join(f"{json.dumps(action)}\n" for action in actions))
        if version == commits - 1:
            DeltaTable(uri).create_checkpoint()
    return uri


def run(bench: Bench) -> Outcome:
    """Measure plans behind a short history and a long one."""
    short, long = bench.size((100, 1_000), (100, 10_000))
    tables = {commits: make_log(bench.folder / f"{commits}", commits) for commits in (short, long)}
    pending = {
        f"{commits:,} commits": BenchTable(
            bench.spark, bench.folder / f"z{commits}", uri, "keys: [id], start: {version: 1}"
        )
        for commits, uri in tables.items()
    }
    newest = {
        f"1 commit behind {commits - 1:,}": BenchTable(
            bench.spark, bench.folder / f"n{commits}", uri, f"keys: [id], start: {{version: {commits}}}"
        )
        for commits, uri in tables.items()
    }
    ways = {name: lambda _, table=table: plan_table(table.work()) for name, table in (pending | newest).items()}
    case = Case("plan", interleaved(bench.meter, ways, bench.rounds), f"{short:,} commits")
    behind = [case.seconds(name) for name in newest]
    return Outcome(
        "plan",
        [case],
        [
            Goal(f"plan of {long:,} commits", case.seconds(f"{long:,} commits"), 2, "s"),
            Goal("plan of one commit, long history of short", behind[1] / behind[0], 2),
        ],
    )
