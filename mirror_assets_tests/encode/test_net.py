"""The net encoder: applying its one change per key to what was there before gives what is there after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from mirror_assets.encode.columns import COMMIT_VERSION
from mirror_assets.encode.counted import observed_changes
from mirror_assets.encode.net import NetSlice, encode_net, net_rows
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import DUPLICATE_KEY
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.projection import ALL_ROWS
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.scan_builder import scan_changes
from mirror_assets.source.schema import LandedColumn
from mirror_assets_tests.encode.histories import History
from mirror_assets_tests.errors import raises_row

# One process makes the histories once for all tests that read them.
pytestmark = pytest.mark.xdist_group("random histories")

_COLUMNS = (LandedColumn("id", "int"), LandedColumn("name", "string"))
_SLICE = NetSlice("t", ("id",), _COLUMNS, 2)
_SCHEMA = "_change_type STRING, _commit_version BIGINT, id INT, name STRING"
OLD, NEW = "delete", "insert"


def feed(spark: SparkSession, *rows: tuple[str, int, int, str]) -> DataFrame:
    return spark.createDataFrame(list(rows), _SCHEMA)


def landed(folder: Path) -> dict[int, tuple[int, str | None]]:
    rows = pa.concat_tables(pq.read_table(file) for file in folder.glob("*.parquet")).to_pylist()
    found = {row["id"]: (row[ROW_MARKER], row["name"]) for row in rows}
    assert len(found) == len(rows)
    return found


def test_what_came_and_went_lands_nothing_and_all_else_once(spark: SparkSession, tmp_path: Path) -> None:
    changes = feed(
        spark,
        *((NEW, 1, 1, "came"), (OLD, 2, 1, "came")),
        *((NEW, 1, 2, "came"), (OLD, 3, 2, "came"), (NEW, 3, 2, "stayed")),
        *((OLD, 1, 3, "was"), (NEW, 2, 3, "back"), (OLD, 4, 3, "back")),
        *((OLD, 1, 4, "was"), (NEW, 1, 4, "once"), (OLD, 2, 4, "once")),
        *((NEW, 2, 4, "twice"), (OLD, 1, 5, "same"), (NEW, 1, 5, "same")),
    )
    counts = encode_net(observed_changes(changes, ALL_ROWS), _SLICE, str(tmp_path / "parts"), "zstd", {})
    assert len(list((tmp_path / "parts").glob("*.parquet"))) == _SLICE.parts
    assert landed(tmp_path / "parts") == {
        2: (Marker.INSERT, "stayed"),
        3: (Marker.DELETE, None),
        4: (Marker.UPDATE, "twice"),
        5: (Marker.UPDATE, "same"),
    }
    read = ReadRows(insert=7, delete=7)
    assert (counts.scanned, counts.landing) == (read, read)
    signs = [(row[COMMIT_VERSION], 1 if row["_change_type"] == NEW else -1) for row in changes.collect()]
    assert counts.weighted == sum(sign * (version * 2654435761 % 1000003 + 1) for version, sign in signs)


def test_two_live_rows_of_one_key_are_refused_with_the_key(spark: SparkSession, tmp_path: Path) -> None:
    twice = feed(spark, (NEW, 2, 1, "a"), (NEW, 2, 1, "b"))
    with raises_row(DUPLICATE_KEY, match="«id=1» at version 2"):
        encode_net(observed_changes(twice, ALL_ROWS), _SLICE, str(tmp_path / "parts"), "zstd", {})


def test_net_changes_of_a_random_history_give_the_source(
    spark: SparkSession, tmp_path: Path, history_of: Callable[[int, bool], History]
) -> None:
    history = history_of(2, True)
    columns = (_COLUMNS[0], LandedColumn("part", "int"), _COLUMNS[1], LandedColumn("amount", "decimal(10,2)"))
    changes = read_scan(spark, scan_changes(DeltaLog(history.uri), CommitRange(1, history.tip)))
    slice_ = NetSlice("t", ("id",), columns, 3)
    plan = net_rows(changes, slice_, {})._jdf.queryExecution().executedPlan().toString()
    assert (plan.count("Exchange hashpartitioning"), plan.count("Window [")) == (1, 1)
    encode_net(observed_changes(changes, ALL_ROWS), slice_, str(tmp_path / "parts"), "zstd", {})
    rows = {row["id"]: row.asDict() for row in _version(spark, history.uri, 0)}
    for file in (tmp_path / "parts").glob("*.parquet"):
        for row in pq.read_table(file).to_pylist():
            marker = row.pop(ROW_MARKER)
            assert (row["id"] in rows) == (marker != Marker.INSERT)
            if marker == Marker.DELETE:
                del rows[row["id"]]
            else:
                rows[row["id"]] = row
    assert rows == {row["id"]: row.asDict() for row in _version(spark, history.uri, history.tip)}


def _version(spark: SparkSession, uri: str, version: int) -> list[Row]:
    return list(spark.read.format("delta").option("versionAsOf", version).load(uri).collect())
