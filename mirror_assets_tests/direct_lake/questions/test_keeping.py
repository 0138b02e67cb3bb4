"""Keeping the newest months: what surely stays, what surely goes, and what files don't tell."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import ColumnProperties, WriterProperties, write_deltalake
from hypothesis import example, given
from hypothesis import strategies as st

from mirror_assets.direct_lake.row_questions import RowsKept, days_of, months_before, rows_kept
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets_tests.direct_lake.tables import seen

_TODAY = date(2024, 6, 30)


def _kept(path: Path, column: str, months: int = 3) -> RowsKept:
    return rows_kept(*seen(path), column, months, _TODAY)


def _counts(kept: RowsKept) -> tuple[int, int, int]:
    return kept.kept, kept.gone, kept.undecided


@given(st.dates(date(1900, 1, 1), date(2200, 1, 1)), st.integers(0, 500))
def test_months_are_those_of_the_calendar(day: date, months: int) -> None:
    found = months_before(day, months)
    assert (day.year - found.year) * 12 + day.month - found.month == months
    assert found.day == day.day or (found + timedelta(days=1)).day == 1


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)))
@example(date(9999, 12, 31))  # what has no end has it for one
def test_a_day_lies_in_its_day_month_and_year(day: date) -> None:
    for form in ("%Y-%m-%d", "%Y%m%d", "%Y-%m", "%Y%m", "%Y", "%Y-%m-%d 00:00:00", "%Y-%m-%dT01:02:03.4Z"):
        value = f"{day.year:04}" + day.strftime(form.removeprefix("%Y"))
        first, last = days_of(value)
        assert first <= day <= last
        assert first == last or (first.day, last.day) == (1, monthrange(last.year, last.month)[1])


@pytest.mark.parametrize("value", ["", "x", "202", "2024-13", "2024-02-30", "20240", "2024-1"])
def test_what_is_no_date(value: str) -> None:
    with pytest.raises(ValueError, match=r"no date|month|day"):
        days_of(value)


def test_by_bounds_of_dates_row_group_by_row_group(tmp_path: Path) -> None:
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(180)]
    dates = pa.array([None if i % 60 == 5 else day for i, day in enumerate(days)])
    write_deltalake(tmp_path, pa.table({"day": dates}), writer_properties=WriterProperties(max_row_group_size=60))
    # Row groups of January and February, of March and April, of May and June; each has one null.
    assert _counts(_kept(tmp_path, "day", 3)) == (59, 60 + 2, 59)
    assert _counts(_kept(tmp_path, "day", 12)) == (177, 3, 0)
    assert _counts(_kept(tmp_path, "day", 0)) == (0, 180, 0)
    answer = _kept(tmp_path, "day").answer(3)
    assert (answer.question, answer.found) == (
        "rows of the newest months, 3",
        "59 to 118 of 180 rows are from 2024-03-30 or later",
    )


def test_by_bounds_of_timestamps_to_the_microsecond(tmp_path: Path) -> None:
    midnight = datetime(2024, 3, 30, tzinfo=timezone.utc)
    before = midnight - timedelta(microseconds=1)
    for at in (before, midnight):
        write_deltalake(tmp_path, pa.table({"at": pa.array([at], pa.timestamp("us", "UTC"))}), mode="append")
    assert _counts(_kept(tmp_path, "at")) == (1, 1, 0)


def test_rows_of_before_the_column_came_go(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}))
    write_deltalake(tmp_path, pa.table({"id": [3], "day": [_TODAY]}), mode="append", schema_mode="merge")
    assert _counts(_kept(tmp_path, "day")) == (1, 2, 0)


def test_without_statistics_nothing_is_decided(tmp_path: Path) -> None:
    properties = WriterProperties(default_column_properties=ColumnProperties(statistics_enabled="NONE"))
    write_deltalake(tmp_path, pa.table({"day": [_TODAY, None]}), writer_properties=properties)
    assert _counts(_kept(tmp_path, "day")) == (0, 0, 2)


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([date(2024, 3, 30), date(2024, 3, 29), None], (1, 2, 0)),
        (["2024-04", "2024-03", "2024-02"], (1, 1, 1)),
        ([202404, 202403, None], (1, 1, 1)),
        (["2025", "2024", "2023"], (1, 1, 1)),
    ],
)
def test_by_partitions(tmp_path: Path, values: list[object], counts: tuple[int, int, int]) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(3), "p": pa.array(values)}), partition_by=["p"])
    assert _counts(_kept(tmp_path, "p")) == counts


def test_a_column_that_is_no_date_is_said(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "p": ["north"]}), partition_by=["p"])
    with pytest.raises(SettingError, match="age of `id`: its type is bigint") as error:
        _kept(tmp_path, "id")
    assert error.value.code is ErrorCode.NOT_A_DATE
    with pytest.raises(SettingError, match="'north' is no date"):
        _kept(tmp_path, "p")
