"""Histories of real tables: where they begin, and what is maintenance in them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.delta.errors import LogGap
from mirror_assets.direct_lake.framing import framing_effect, framing_series
from mirror_assets.direct_lake.log_history import Maintenance, read_history, recent_history
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets_tests.delta.handmade import commit_file


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three appends, OPTIMIZE, a checkpoint, an append, RESTORE to the third append, VACUUM."""
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number, number + 10]}), mode="append")
    DeltaTable(tmp_path).optimize.compact()
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, pa.table({"id": [99]}), mode="append")
    DeltaTable(tmp_path).restore(2)
    DeltaTable(tmp_path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    return tmp_path


def test_maintenance_is_marked_and_moves_no_row(table: Path) -> None:
    log = TableLog(str(table))
    history = read_history(log)
    assert (history.first, history.last) == (0, 7)
    points = {point.effect.last: point for point in framing_series(history, history.every_version())}
    assert {version: point.marks[0].operation for version, point in points.items() if point.marks} == {
        3: Maintenance.OPTIMIZE,
        5: Maintenance.RESTORE,
        7: Maintenance.VACUUM,
    }
    optimize, restore, vacuum = (points[version].effect for version in (3, 5, 7))
    assert (optimize.kept.rows, optimize.reloaded.rows, optimize.dropped.rows) == (0, 6, 6)
    assert (restore.kept.rows, restore.reloaded.rows, restore.dropped.rows) == (0, 6, 7)
    assert (vacuum.kept.rows, vacuum.reloaded.rows, vacuum.dropped.rows) == (6, 0, 0)
    assert framing_effect(log.snapshot(2), log.snapshot(7)).kept.rows == 6


def test_a_cleaned_log_begins_at_its_checkpoint(table: Path) -> None:
    for version in range(3):
        commit_file(table, version).unlink()
    history = read_history(TableLog(str(table)))
    assert (history.first, history.last) == (3, 7)
    assert len(framing_series(history, history.every_version())) == 4


def test_a_commit_that_only_a_checkpoint_replaces_is_where_it_begins(table: Path) -> None:
    """Version 3 can be put together, and so can all before it; but nothing tells what its commit did."""
    commit_file(table, 3).unlink()
    log = TableLog(str(table))
    assert read_history(log).first == recent_history(log, 0).first == 3
    assert recent_history(log, log.time_ms(6)).first == 6


def test_a_hole_is_not_read_over(table: Path) -> None:
    commit_file(table, 1).unlink()
    log = TableLog(str(table))
    assert log.versions() == (0, 3, 4, 5, 6, 7)
    assert read_history(log).first == 3
    assert read_history(log, first=4, last=5).every_version() == (4, 5)
    with pytest.raises(LogGap) as caught:
        read_history(log, first=0)
    assert caught.value.version == 1


def test_one_version_is_a_history_too(table: Path) -> None:
    history = read_history(TableLog(str(table)), first=5, last=5)
    assert history.every_version() == history.daily_versions() == (5,)
    assert framing_series(history, history.every_version()) == ()
