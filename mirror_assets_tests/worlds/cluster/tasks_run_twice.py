"""Mirrors a table on executors in other processes, while an executor is killed or tasks run speculatively.

`python -m mirror_assets_tests.worlds.cluster.tasks_run_twice FOLDER kill` prints a line of JSON for each case.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.encode.session import open_session, spark_settings
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.worlds.cluster.standalone import executors, standalone
from mirror_assets_tests.worlds.kills.source import Orders

KILL, SPECULATE = "kill", "speculate"
CASES = {
    "changes": "",
    "changes, where": "where: id % 3 <> 0",
    "net": "compact: true",
    "net, where": "compact: true\n    where: id % 3 <> 0",
}
_ROWS, _FILES, _TARGET_ROWS = 4_000, 8, 100
_LEAST_PARTS = 20
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.speculation.efficiency.enabled": "false",
}


@dataclass(frozen=True)
class Outcome:
    """A slice that was mirrored: the rows that Spark observed, and those of the check's verdict.

    `killed`: an executor was killed in the second stage. `again` are attempts of stages after the first, and
    `speculative` the tasks that Spark started a second time, both while the slice was mirrored.
    """

    case: str
    kind: str
    killed: bool
    observed: int
    counted: int
    written: int
    again: int
    speculative: int
    is_equal: bool
    by_files: bool
    seconds: float


def main() -> None:
    """Mirror the table once for each case."""
    folder, how = Path(sys.argv[1]), sys.argv[2]
    with standalone(folder / "cluster") as master:
        _mirror_on(master, folder, how)


def _mirror_on(master: str, folder: Path, how: str) -> None:
    events = folder / "events"
    events.mkdir()
    settings = {
        "spark.master": master,
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.locality.wait": "0",
    }
    spark = open_session(spark_settings(settings | (_SPECULATION if how == SPECULATE else {})))
    source = Orders(folder / "orders")
    source.create(_ROWS, _FILES)
    for case, table in CASES.items():
        outcome = _mirror(spark, folder, source, case, table, kills=how == KILL)
        print(json.dumps(asdict(outcome)), flush=True)  # noqa: T201 the test reads it
    spark.stop()


def _mirror(spark: SparkSession, folder: Path, source: Orders, case: str, table: str, *, kills: bool) -> Outcome:
    lab = Lab(spark, folder / "labs" / case.replace(", ", "-"))
    shutil.copytree(source.path, lab.uri)
    lab.configure(table, f"slices: {{max_commits: 100}}\n  files: {{target_rows: {_TARGET_ROWS}}}")
    lab.mirror()
    orders = Orders(Path(lab.uri))
    orders.touch(_ROWS // 4)
    orders.overwrite()  # its old and new rows are paired, which takes a shuffle
    before, began = _events(folder), time.monotonic()
    with _killing(spark, folder / "cluster", enabled=kills) as killed:
        (slice_,) = lab.mirror()
    seconds, after = time.monotonic() - began, _events(folder)
    (verdict,) = (result for result in slice_.results if result.check == "row_conservation")
    assert verdict.passed, verdict
    record = slice_.record
    assert record.scanned is not None
    lab.replicator.poll()
    status = lab.replicator.table(TABLE)
    assert status is not None
    mirrored, expected = DeltaTable(status.location).to_pyarrow_table().sort_by("id"), orders.rows()
    if "where" in table:
        expected = expected.filter(pa.array(expected["id"].to_numpy() % 3 != 0))
    return Outcome(
        case=case,
        kind=record.kind.value,
        killed=bool(killed),
        observed=record.read.total,
        counted=int(verdict.metadata["read"]),
        written=record.markers.total,
        again=after[0] - before[0],
        speculative=after[1] - before[1],
        is_equal=mirrored.select(expected.column_names).equals(expected),
        by_files=record.compared is not None,
        seconds=round(seconds, 1),
    )


@contextmanager
def _killing(spark: SparkSession, cluster: Path, *, enabled: bool) -> Iterator[list[int]]:
    """Kill an executor as soon as a stage that writes parts has ended some tasks."""
    killed, ends = list[int](), threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        while not ends.wait(0.01):
            for id_ in tracker.getActiveStageIds():
                stage = tracker.getStageInfo(id_)
                if stage and stage.numTasks >= _LEAST_PARTS and 2 <= stage.numCompletedTasks < stage.numTasks // 2:
                    victim = min(executors(cluster))
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)
                    return

    thread = threading.Thread(target=watch)
    if enabled:
        thread.start()
    try:
        yield killed
    finally:
        ends.set()
        if enabled:
            thread.join()


def _events(folder: Path) -> tuple[int, int]:
    """Return how many stages Spark has attempted again, and how many speculative tasks it has started."""
    again = speculative = 0
    time.sleep(1)  # the log is written by a thread of its own
    for path in (folder / "events").rglob("*"):
        if path.is_file():
            for line in path.read_text(errors="replace").splitlines():
                again += '"SparkListenerStageSubmitted"' in line and '"Stage Attempt ID":0' not in line
                speculative += '"SparkListenerTaskStart"' in line and '"Speculative":true' in line
    return again, speculative


if __name__ == "__main__":
    main()
