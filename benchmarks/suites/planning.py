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
from mirror_assets.pipeline.plan import plan_table

_TIME_MS = 1_700_000_000_000
_PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "1000000"}


class Log:
    """A table of one file that is replaced by every commit; the data is not there."""

    def __init__(self, folder: Path, commits: int) -> None:
        """Make so many commits behind version 0, with a checkpoint before the last."""
        self.uri, self._log = str(folder), folder / "_delta_log"
        write_deltalake(self.uri, pa.table({"id": [1]}), configuration=_PROPERTIES)
        lines = (self._log / f"{0:020d}.json").read_text(encoding="utf-8").splitlines()
        self._added = next(action["add"] for action in map(json.loads, lines) if "add" in action)
        self.version = 0
        while self.version < commits:
            self.commit()
            if self.version == commits - 1:
                DeltaTable(self.uri).create_checkpoint()

    def commit(self) -> None:
        """One more."""
        self.version += 1
        time_ms, new = _TIME_MS + self.version, {**self._added, "path": f"part-{self.version}.parquet"}
        info = {"commitInfo": {"timestamp": time_ms, "operation": "WRITE"}}
        removed = {"remove": {"path": self._added["path"], "deletionTimestamp": time_ms, "dataChange": True}}
        text = "".join(f"{json.dumps(action)}\n" for action in (info, removed, {"add": new}))
        (self._log / f"{self.version:020d}.json").write_text(text, encoding="utf-8")
        self._added = new


def run(bench: Bench) -> Outcome:
    """Measure plans behind a short history and a long one."""
    short, long = bench.size((100, 1_000), (100, 10_000))
    few, many = _tables(bench, short), _tables(bench, long)
    ways = {name: lambda _, table=table: plan_table(table.context()) for name, table in (few | many).items()}
    (whole, newest), (whole_long, newest_long) = tuple(few), tuple(many)
    case = Case("plan", interleaved(bench.meter, ways, bench.rounds), whole)
    return Outcome(
        "plan",
        [case],
        [
            Goal(f"plan of {whole_long}", case.seconds(whole_long), 2, "s"),
            Goal("plan of one commit, long history of short", case.seconds(newest_long) / case.seconds(newest), 2),
        ],
    )


def _tables(bench: Bench, commits: int) -> dict[str, BenchTable]:
    """The same table once with all commits waiting, once with one behind all others, which are covered."""
    log = Log(bench.folder / f"{commits}", commits)
    behind = BenchTable(bench.spark, bench.folder / f"n{commits}", log.uri, "keys: [id], start: latest")
    behind.land()
    log.commit()
    waiting = BenchTable(bench.spark, bench.folder / f"z{commits}", log.uri, "keys: [id], start: {version: 1}")
    return {f"{commits:,} commits": waiting, f"1 commit behind {commits:,}": behind}
