"""One report of a real table: its parts are those of the engine, and each footer is read once."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.direct_lake.footer_reader import FooterCache, FooterReader, cache_folder
from mirror_assets.direct_lake.guardrails import FitVerdict, Limit, sku_of
from mirror_assets.direct_lake.maintenance_plan import StepKind
from mirror_assets.direct_lake.model_frames import Frame
from mirror_assets.direct_lake.report import (
    DirectLakeReport,
    InspectedTable,
    ReportOptions,
    table_report,
)
from mirror_assets.direct_lake.vacuum import MirrorNeeds, Requirement, RetentionConsumers
from mirror_assets.errors import ErrorCode, SettingError, StopError
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.errors import raises
from mirror_assets_tests.source.handmade import commit_file

_WEEK = 7 * 86_400
_NOW = datetime(2026, 3, 10, tzinfo=timezone.utc).timestamp()


def _sales(first: int, last: int, day: date = date(2026, 3, 1)) -> pa.Table:
    ids = range(first, last)
    days = pa.array([day + timedelta(days=i % 2) for i in ids], pa.date32())
    return pa.table({"id": ids, "day": days, "price": [i / 7 for i in ids], "photo": [b"x" for _ in ids]})


def _of(path: Path, requested: ReportOptions | None = None, now: float | None = None) -> DirectLakeReport:
    return table_report(_look(path, now), requested)


def _look(path: Path, now: float | None = None) -> InspectedTable:
    log = DeltaLog(str(path))
    return InspectedTable(str(path), log, FooterReader(log.uri, log.files), time.time() if now is None else now)


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """Versions 0 to 2 add 30 rows on two days, version 3 deletes those of version 1."""
    for first in (0, 10, 20):
        write_deltalake(tmp_path / "sales", _sales(first, first + 10), mode="append", partition_by=["day"])
    DeltaTable(tmp_path / "sales").delete("id >= 10 AND id < 20")
    return tmp_path / "sales"


def test_its_parts_agree(sales: Path) -> None:
    found = _of(sales)
    figures = found.guardrails.table.figures
    assert (found.name, found.uri, found.version) == (str(sales), str(sales), 3)
    assert found.timestamp_ms == DeltaLog(str(sales)).time_ms(3)
    assert found.layout.version == found.vacuum.version == found.version
    assert (
        (figures.files, figures.rows, figures.row_groups)
        == (4, 20, 4)
        == (
            found.layout.files.count,
            found.layout.rows,
            found.layout.row_groups.count,
        )
    )
    assert found.guardrails.mirror is not None
    assert found.guardrails.mirror.figures.rows == 20
    assert {result.column: result.certainty.value for result in found.types} == {"price": "may fail", "photo": "fails"}
    assert found.advice == ()
    assert found.vacuum.is_safe
    assert found.vacuum.deleted == ()


def test_readers_and_the_clock_are_given_to_the_plan(sales: Path) -> None:
    readers = RetentionConsumers((Frame("model", 1),), MirrorNeeds(1))
    found = _of(sales, ReportOptions(readers), time.time() + _WEEK + 60).vacuum
    assert len(found.deleted) == len(found.threatened) == 2
    assert {need for file in found.threatened for need in file.needed_by} == {
        Requirement("model", 1),
        Requirement("mirror", 3),
    }
    told = _of(
        sales, ReportOptions(consumers=RetentionConsumers((Frame("model", 1),), retain_hours=0)), time.time() + 60
    ).vacuum
    assert len(told.threatened) == 2


def test_what_framing_loads_by_day_and_for_each_frame(sales: Path) -> None:
    day = 86_400
    for version, days_ago in enumerate((9, 2, 1, 1)):
        _dated(commit_file(sales, version), _NOW - days_ago * day)
    found = table_report(_look(sales, _NOW), ReportOptions(RetentionConsumers((Frame("model", 1), Frame("model", 3)))))
    assert [(point.effect.first, point.effect.last) for point in found.framing] == [(0, 1), (1, 3)]
    assert [point.effect.reloaded.rows for point in found.framing] == [10, 10]
    assert [(effect.first, effect.dropped.rows) for effect in found.reframing] == [(1, 10), (3, 0)]


def test_maintenance_keeps_what_readers_need(sales: Path) -> None:
    for first in range(100, 200, 10):
        write_deltalake(sales, _sales(first, first + 10), mode="append", partition_by=["day"])
    requested = ReportOptions(RetentionConsumers((Frame("model", 1),), MirrorNeeds(12)))
    fresh = _of(sales, requested).maintenance
    assert [step.kind for step in fresh.steps] == [StepKind.OPTIMIZE]
    late = _of(sales, requested, time.time() + 8 * 86_400)
    assert [step.kind for step in late.maintenance.steps][-2:] == [StepKind.RETENTION, StepKind.VACUUM]
    assert late.maintenance.steps[-2].statement == late.vacuum.statement


def test_maintenance_goes_by_the_tables_properties_whatever_retain_is_asked_about(sales: Path) -> None:
    found = _of(sales, ReportOptions(RetentionConsumers(retain_hours=0)), time.time() + 60)
    assert len(found.vacuum.deleted) == 2
    assert {left.kind: left.why for left in found.maintenance.left_out}[
        StepKind.VACUUM
    ] == "no file is old enough to be deleted"


def test_guardrails_of_each_capacity(sales: Path) -> None:
    fitting = _of(sales).guardrails.table
    assert fitting.smallest is not None
    assert fitting.smallest.name == "F2"
    use = fitting.into(sku_of("P1")).uses[0]
    assert (use.limit, use.used, use.allowed, use.verdict) == (Limit.FILES, 4, 5_000, FitVerdict.FITS)


def test_growth_is_that_of_the_days_asked_for(sales: Path) -> None:
    day = 86_400
    for version in range(4):
        commit = commit_file(sales, version)
        _dated(commit, _NOW - (4 - version) * day)
    near, far = (replace(_look(sales, _NOW), recent_days=days).guardrails.table.figures.growth for days in (1.5, 30.0))
    assert near is not None
    assert far is not None
    assert near.rows is not None
    assert near.rows < 0
    assert far.rows is not None
    assert far.rows > near.rows
    assert (near.commits, far.commits) == (1, 3)


def _dated(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))


def test_the_use_of_columns_is_reported_if_it_is_given(sales: Path) -> None:
    assert [answer.question for answer in _of(sales).answers] == ["nearly unique floats"]
    used, unused, _, floats = _of(sales, ReportOptions(columns=("id", "price"))).answers
    assert (used.question, set(used.column.split(", "))) == ("bytes to load", {"id", "price"})
    assert (unused.question, floats.question) == ("unused columns", "nearly unique floats")


def test_a_second_report_reads_no_footer(sales: Path, tmp_path: Path) -> None:
    log = DeltaLog(str(sales))
    reader = FooterReader(log.uri, log.files, FooterCache.of(tmp_path / "cache", log.uri))
    first = table_report(InspectedTable(log.uri, log, reader, _NOW))
    for file in sales.rglob("*.parquet"):
        file.write_bytes(b"")
    again = table_report(InspectedTable(log.uri, log, reader, _NOW))
    assert again == first
    with raises(StopError, ErrorCode.DATA_FILE_MISSING):
        _missing(sales)


def _missing(sales: Path) -> None:
    for file in sales.rglob("*.parquet"):
        file.unlink()
    _of(sales)


def test_an_empty_table_has_a_report(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "empty", pa.schema([("id", pa.int64())]))
    found = _of(tmp_path / "empty")
    assert (found.guardrails.table.figures.rows, found.advice, found.types, found.answers) == (0, (), (), ())


def test_a_column_that_is_not_there(sales: Path) -> None:
    with raises(SettingError, ErrorCode.COLUMN_UNKNOWN):
        _of(sales, ReportOptions(columns=("ids",)))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_CACHE_HOME": "/caches"}, Path("/caches/mirror_assets/footers")),
        ({"XDG_CACHE_HOME": "relative"}, Path("~/.cache/mirror_assets/footers").expanduser()),
        ({}, Path("~/.cache/mirror_assets/footers").expanduser()),
    ],
)
def test_facts_are_kept_in_the_users_cache_folder(environment: dict[str, str], expected: Path) -> None:
    assert cache_folder(environment) == expected
