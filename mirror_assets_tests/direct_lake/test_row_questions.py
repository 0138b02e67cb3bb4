"""Questions about rows: what the newest months keep, and which partitions commits touch."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from hypothesis import example, given
from hypothesis import strategies as st

from mirror_assets.direct_lake.row_questions import (
    Partition,
    RowsKept,
    Touched,
    days_of,
    months_before,
    partition_of,
    partitions_touched,
    rows_kept,
)
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.table_log import TableLog
from mirror_assets_tests.direct_lake.tables import seen
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    file_action,
    info,
    metadata_action,
    schema_string,
    write_commit,
)

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


def _rows(*partitions: int) -> pa.Table:
    return pa.table({"id": range(len(partitions)), "p": list(partitions)})


def _months(path: Path) -> TableLog:
    write_deltalake(path, _rows(1, 1, 2, 2, 3, 3), partition_by=["p"])
    write_deltalake(path, _rows(3), mode="append")
    table = DeltaTable(path)
    table.delete("p = 1 and id = 0")
    table.update(predicate="p = 2", updates={"p": "3"})
    table.optimize.compact()
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})
    return TableLog(str(path))


def _live(*months: int) -> set[Partition]:
    return {partition_of({"p": str(month)}) for month in months}


def _fields(action: object) -> Action:
    assert isinstance(action, dict)
    return action


def _told(touched: tuple[Touched, ...]) -> list[tuple[str, list[str]]]:
    return [(one.operation, sorted(str(dict(partition)["p"]) for partition in one.partitions)) for one in touched]


def test_every_commit_tells_where_it_wrote_and_removed(tmp_path: Path) -> None:
    log = _months(tmp_path)
    told = _told(partitions_touched(log, log.commits(0, log.newest())))
    assert told[:5] == [
        ("WRITE", ["1", "2", "3"]),
        ("WRITE", ["3"]),
        ("DELETE", ["1"]),
        ("UPDATE", ["2", "3"]),
        ("OPTIMIZE", ["3"]),
    ]
    assert told[5][1] == []


def test_files_from_before_the_commits_are_looked_up(tmp_path: Path) -> None:
    log = _months(tmp_path)
    (delete,) = partitions_touched(log, log.commits(2, 2))
    assert (_told((delete,)), delete.unknown) == ([("DELETE", ["1"])], 0)
    assert delete.answer(_live(1, 2, 3)).found == "DELETE touches 1 of 3 partitions"


def test_partitions_that_are_gone_are_none_of_those_that_are_there(tmp_path: Path) -> None:
    log = _months(tmp_path)
    (update,) = partitions_touched(log, log.commits(3, 3))
    assert update.answer(_live(1, 3)).found == "UPDATE touches 1 of 2 partitions, and 1 that is gone now"
    assert update.answer(_live(1)).found == "UPDATE touches 0 of 1 partitions, and 2 that are gone now"


def test_a_partition_is_the_same_however_its_writer_orders_the_columns(tmp_path: Path) -> None:
    adds = [file_action("add", f"{number}.parquet") for number in range(2)]
    partitions = ({"p": "1", "q": "2"}, {"q": "2", "p": "1"})
    for add, values in zip(adds, partitions, strict=True):
        add["add"] = {**_fields(add["add"]), "partitionValues": values}
    schema = schema_string(column("id"), column("p"), column("q"))
    write_commit(tmp_path, 0, [info(), PROTOCOL, metadata_action(schema), *adds])
    (touched,) = partitions_touched(log := TableLog(str(tmp_path)), log.commits(0, 0))
    assert touched.partitions == (partition_of({"q": "2", "p": "1"}),)


def test_what_the_log_tells_no_more_is_counted(tmp_path: Path) -> None:
    write_deltalake(tmp_path, _rows(1, 2), partition_by=["p"])
    table = DeltaTable(tmp_path)
    table.delete("p = 2")
    table.create_checkpoint()
    commit_file(tmp_path, 0).unlink()
    log = TableLog(str(tmp_path))
    (touched,) = partitions_touched(log, log.commits(1, 1))
    assert (touched.partitions, touched.unknown) == ((), 1)
    assert (
        touched.answer(_live(1)).found
        == "DELETE touches 0 of 1 partitions, and 1 files whose partition the log tells no more"
    )


def test_a_table_without_partitions_has_one(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    log = TableLog(str(tmp_path))
    (touched,) = partitions_touched(log, log.commits(0, 0))
    assert touched.partitions == ((),)
