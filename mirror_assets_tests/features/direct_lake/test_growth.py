"""Sizes and growth of real tables by their logs."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

from mirror_assets.features.direct_lake.footer_reader import FooterReader
from mirror_assets.features.direct_lake.footers import Footer, Footers, as_table
from mirror_assets.features.direct_lake.framing import recent_span, table_sizes
from mirror_assets.features.direct_lake.guardrails import Growth, growth, measure
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    column,
    commit_file,
    file_action,
    info,
    metadata_action,
    schema_string,
    write_commit,
)

_DAY = 86_400_000
_START = 1_700_000_000_000


def _append(path: Path, rows: int = 10) -> None:
    write_deltalake(path, pa.table({"id": range(rows)}), mode="append")


def _dated(path: Path, days: float = 1.0) -> DeltaLog:
    """Return the table's log, with commits this many days apart."""
    for version in range(DeltaTable(path).version() + 1):
        at = (_START + version * days * _DAY) / 1_000
        if commit_file(path, version).exists():
            os.utime(commit_file(path, version), (at, at))
    return DeltaLog(str(path))


def _grown(log: DeltaLog, since: float, now: float) -> Growth:
    since_ms = int(_START + since * _DAY)
    found = growth(recent_span(log, since_ms), since_ms, int(_START + now * _DAY))
    assert found is not None
    return found


def test_figures_are_those_of_the_live_files(tmp_path: Path) -> None:
    small_groups = WriterProperties(max_row_group_size=20)
    for _ in range(3):
        write_deltalake(tmp_path, pa.table({"id": range(50)}), mode="append", writer_properties=small_groups)
    DeltaTable(tmp_path).delete("id = 7")
    log = DeltaLog(str(tmp_path))
    found = measure("t", log.snapshot(), FooterReader(str(tmp_path), log.files).read(log.snapshot().files))
    paths = DeltaTable(tmp_path).file_uris()
    assert (found.rows, found.files) == (147, len(paths))
    assert found.row_groups == sum(pq.read_metadata(path).num_row_groups for path in paths)
    assert found.bytes == sum(Path(path).stat().st_size for path in paths)


def test_hidden_rows_are_counted_separately(tmp_path: Path) -> None:
    hiding = file_action("add", records=10, deleted=4)
    write_commit(tmp_path, 0, [PROTOCOL, metadata_action(schema_string(column("id"))), info(), hiding])
    footer = Footer("a.parquet", 1, 10, "", vorder=False, dictionaries=False, group_rows=(), chunks=())
    found = measure("t", DeltaLog(str(tmp_path)).snapshot(), Footers(as_table([footer])))
    assert (found.rows, found.hidden_rows) == (6, 4)


def test_a_table_that_gains_a_file_a_day(tmp_path: Path) -> None:
    for _ in range(6):
        _append(tmp_path)
    found = _grown(_dated(tmp_path), 2.5, 5)
    assert (found.commits, found.days) == (3, 2.5)
    assert found.files == pytest.approx(1, rel=0.2)
    assert found.rows == pytest.approx(10 * found.files)
    # The rows of the first commit are no growth.
    whole = _grown(_dated(tmp_path), -30, 5)
    assert (whole.days, whole.files, whole.rows) == pytest.approx((5, 1, 10))


def test_a_table_without_commits_does_not_grow(tmp_path: Path) -> None:
    for _ in range(3):
        _append(tmp_path)
    found = _grown(_dated(tmp_path), 10, 20)
    assert (found.files, found.rows, found.bytes, found.commits) == (0, 0, 0, 0)
    assert _grown(_dated(tmp_path), 0.5, 1_000).files < 0.01


def test_sizes_after_compactions_and_deletes_follow_from_the_first_version(tmp_path: Path) -> None:
    """delta-rs doesn't log how many rows it removes."""
    for _ in range(4):
        _append(tmp_path)
    DeltaTable(tmp_path).optimize.compact()
    DeltaTable(tmp_path).delete("id < 5")
    for _ in range(2):
        _append(tmp_path)
    sizes = list(table_sizes(recent_span(_dated(tmp_path), int(_START + 3.5 * _DAY))))
    steps = [(after.files - before.files, after.known_rows - before.known_rows) for before, after in pairwise(sizes)]
    assert steps == [(-3, 0), (0, -20), (1, 10), (1, 10)]
    live = sum(Path(uri).stat().st_size for uri in DeltaTable(tmp_path).file_uris())
    of_first = sum(file.bytes for file in DeltaLog(str(tmp_path)).snapshot(3).files)
    assert sizes[-1].bytes - sizes[0].bytes == live - of_first


def test_growth_in_a_cleaned_log_begins_with_the_log(tmp_path: Path) -> None:
    for version in range(5):
        _append(tmp_path)
        if version == 2:
            DeltaTable(tmp_path).create_checkpoint()
    for version in range(3):
        commit_file(tmp_path, version).unlink()
    found = _grown(_dated(tmp_path), -1, 5)
    assert (found.commits, found.days) == (1, 2)
    assert _grown(DeltaLog(str(tmp_path)), -1, 4).rows == pytest.approx(10)


def test_growth_of_rows_without_statistics_is_unknown(tmp_path: Path) -> None:
    begin = [PROTOCOL, metadata_action(schema_string(column("id"))), info(), file_action("add", records=None)]
    write_commit(tmp_path, 0, begin)
    write_commit(tmp_path, 1, [info(), file_action("remove", records=None)])
    os.utime(commit_file(tmp_path, 0), (_START / 1_000,) * 2)
    os.utime(commit_file(tmp_path, 1), (_START / 1_000 + 86_400,) * 2)
    found = _grown(DeltaLog(str(tmp_path)), 0, 1)
    assert found.rows is None
    assert (found.files, found.bytes) == pytest.approx((-1, -100))


def test_less_than_an_hour_makes_no_trend(tmp_path: Path) -> None:
    _append(tmp_path)
    log = _dated(tmp_path)
    span = recent_span(log, _START)
    assert growth(span, _START, _START + 3_599_999) is None
    assert growth(span, _START, _START + 3_600_000) is not None
