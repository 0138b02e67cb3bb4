"""One report of a real table: its parts are those of the engine, and each footer is read once."""

from __future__ import annotations

import os
import time
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.features.direct_lake.consumers import MirrorNeeds, Requirement, RetentionConsumers
from mirror_assets.features.direct_lake.footers import FooterReader
from mirror_assets.features.direct_lake.maintenance_plan import StepKind
from mirror_assets.features.direct_lake.report import InspectedTable, table_report
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.source.handmade import commit_file

_DAY = 86_400
_WEEK = 7 * _DAY
_NOW = datetime(2026, 3, 10, tzinfo=timezone.utc).timestamp()


def _sales(first: int, last: int, day: date = date(2026, 3, 1)) -> pa.Table:
    ids = range(first, last)
    days = pa.array([day + timedelta(days=i % 2) for i in ids], pa.date32())
    return pa.table({"id": ids, "day": days, "price": [i / 7 for i in ids], "photo": [b"x" for _ in ids]})


def _inspected(path: Path, now: float | None = None) -> InspectedTable:
    log = DeltaLog(str(path))
    return InspectedTable(str(path), log, FooterReader(log.uri, log.files), time.time() if now is None else now)


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """Versions 0 to 2 add 30 rows on two days, version 3 deletes those of version 1."""
    for first in (0, 10, 20):
        write_deltalake(tmp_path / "sales", _sales(first, first + 10), mode="append", partition_by=["day"])
    DeltaTable(tmp_path / "sales").delete("id >= 10 AND id < 20")
    return tmp_path / "sales"


def test_the_parts_agree(sales: Path) -> None:
    found = table_report(_inspected(sales))
    size = found.size
    assert (found.name, found.uri, found.version) == (str(sales), str(sales), 3)
    assert found.timestamp_ms == DeltaLog(str(sales)).time_ms(3)
    assert found.layout.version == found.vacuum.version == found.version
    layout = found.layout
    assert (layout.files.count, layout.rows, layout.row_groups.count) == (4, 20, 4)
    assert (size.files, size.rows, size.row_groups) == (4, 20, 4)
    assert {result.column: result.certainty.value for result in found.types} == {"price": "may fail", "photo": "fails"}
    assert found.advice == ()
    assert found.vacuum.is_safe
    assert found.vacuum.deleted == ()


def test_vacuum_is_planned_for_readers_and_clock(sales: Path) -> None:
    readers = RetentionConsumers((Requirement("model", 1),), MirrorNeeds(1))
    found = table_report(_inspected(sales, time.time() + _WEEK + 60), readers).vacuum
    assert len(found.deleted) == len(found.threatened) == 2
    assert {need for file in found.threatened for need in file.needed_by} == {
        Requirement("model", 1),
        Requirement("mirror", 3),
    }
    at_once = table_report(
        _inspected(sales, time.time() + 60), RetentionConsumers((Requirement("model", 1),)), retain_hours=0
    )
    assert len(at_once.vacuum.threatened) == 2
    # Maintenance runs VACUUM without RETAIN.
    assert at_once.maintenance[-1].why == "no file is old enough to be deleted"


def test_each_frame_has_what_a_refresh_loads(sales: Path) -> None:
    found = table_report(_inspected(sales), RetentionConsumers((Requirement("model", 1), Requirement("model", 3))))
    assert [(effect.first, effect.dropped.rows) for effect in found.reframing] == [(1, 10), (3, 0)]


def test_maintenance_keeps_files_that_readers_need(sales: Path) -> None:
    for first in range(100, 200, 10):
        write_deltalake(sales, _sales(first, first + 10), mode="append", partition_by=["day"])
    readers = RetentionConsumers((Requirement("model", 1),), MirrorNeeds(12))
    fresh = table_report(_inspected(sales), readers)
    assert [step.kind for step in fresh.maintenance if step.statement] == [StepKind.OPTIMIZE]
    late = table_report(_inspected(sales, time.time() + 8 * _DAY), readers)
    assert [step.kind for step in late.maintenance][-2:] == [StepKind.RETENTION, StepKind.VACUUM]
    assert late.maintenance[-2].statement == late.vacuum.statement
    assert f"{late.vacuum.statement};" in late.script
    for_fabric = table_report(_inspected(sales), fabric_name="`s`.`t`")
    assert for_fabric.maintenance[0].statement == "OPTIMIZE `s`.`t` VORDER"


def test_growth_is_that_of_the_last_week(sales: Path) -> None:
    for version, days_ago in enumerate((30, 9, 2, 1)):
        os.utime(commit_file(sales, version), (_NOW - days_ago * _DAY,) * 2)
    growth = _inspected(sales, _NOW).size.growth
    assert growth is not None
    assert (growth.commits, growth.days) == (2, 7)


def test_an_empty_table_has_a_report(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "empty", pa.schema([("id", pa.int64())]))
    found = table_report(_inspected(tmp_path / "empty"))
    assert (found.size.rows, found.advice, found.types) == (0, (), ())
