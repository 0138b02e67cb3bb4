"""Limits of capacities: whether tables are within them, when they no longer will be, and what is worth a warning."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeMode
from mirror_assets.features.direct_lake.footers import FooterReader
from mirror_assets.features.direct_lake.framing import Growth, growth
from mirror_assets.features.direct_lake.guardrails import (
    GB,
    SKUS,
    SOURCE_DATE,
    FitVerdict,
    Limit,
    LimitUse,
    Sku,
    TableSize,
    consequence,
    fit,
    measure,
    predicted_mirror,
    sku_of,
)
from mirror_assets.features.direct_lake.with_dagster.direct_lake_checks import check_guardrails
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

_SMALL = TableSize("orders", files=10, row_groups=20, rows=1_000, hidden_rows=0, bytes=GB)
_F2, _F64 = sku_of("F2"), sku_of("F64")

_FIGURES = st.builds(
    TableSize,
    table=st.just("t"),
    files=st.integers(0, 20_000),
    row_groups=st.integers(0, 20_000),
    rows=st.integers(0, 30 * 10**9),
    hidden_rows=st.integers(0, 10**9),
    bytes=st.integers(0, 100 * GB),
)


def _use(table: TableSize, limit: Limit, sku: str = "F2") -> LimitUse:
    return next(use for use in fit(sku_of(sku), table).uses if use.limit is limit)


def test_a_figure_at_its_limit_fits_and_one_above_does_not() -> None:
    at = TableSize("t", files=1_000, row_groups=1_000, rows=300_000_000, hidden_rows=0, bytes=10 * GB)
    assert fit(_F2, at).verdict is FitVerdict.FITS
    for more in (
        replace(at, files=1_001),
        replace(at, row_groups=1_001),
        replace(at, rows=300_000_001),
        replace(at, bytes=10 * GB + 1),
    ):
        assert fit(_F2, more).verdict is FitVerdict.OVER
        assert [use.verdict for use in fit(_F2, more).uses].count(FitVerdict.OVER) == 1


def test_hidden_rows_alone_leave_it_open() -> None:
    hiding = replace(_SMALL, rows=300_000_000, hidden_rows=1)
    assert (_use(hiding, Limit.ROWS).verdict, _use(hiding, Limit.ROWS, "F64").verdict) == (
        FitVerdict.UNSURE,
        FitVerdict.FITS,
    )
    assert hiding.smallest == sku_of("F64")


def test_the_tightest_limit_is_named() -> None:
    tightest = fit(_F2, replace(_SMALL, files=900)).tightest
    assert tightest is not None
    assert (tightest.limit, tightest.headroom_percent) == (Limit.FILES, 10)
    assert str(tightest) == "orders: 900 files, 1,000 are allowed"
    assert _use(replace(_SMALL, files=1_500), Limit.FILES).headroom_percent == -50


def test_days_until_a_limit() -> None:
    growing = replace(_SMALL, growth=Growth(files=99, rows=1.0, bytes=-GB, days=7, commits=9))
    assert _use(growing, Limit.FILES).days_left == 10
    assert _use(growing, Limit.ROW_GROUPS).days_left == pytest.approx(980 / 198)  # two a file, as there are now
    assert _use(growing, Limit.MODEL_BYTES).days_left is None  # it shrinks
    assert fit(_F2, growing).days_left == pytest.approx(980 / 198)
    assert _use(replace(growing, files=1_001), Limit.FILES).days_left == 0
    assert fit(_F2, _SMALL).days_left is None
    grown = replace(growing, growth=Growth(files=0, rows=None, bytes=GB, days=7, commits=9))
    assert fit(_F2, grown).uses[-1].days_left == 9


@given(_FIGURES)
def test_what_fits_fits_into_every_larger_capacity(table: TableSize) -> None:
    fits = [found.verdict is FitVerdict.FITS for found in table.fits]
    assert fits == sorted(fits)
    assert table.smallest == (SKUS[fits.index(True)] if any(fits) else None)


def test_over_a_limit_onelake_fails_and_sql_falls_back() -> None:
    assert "framing fails" in consequence(DirectLakeMode.ONELAKE, Limit.FILES)
    assert "queries to the table" in consequence(DirectLakeMode.SQL, Limit.ROWS)
    assert "all queries" in consequence(DirectLakeMode.SQL, Limit.MODEL_BYTES)
    assert consequence(DirectLakeMode.SQL_ONLY, Limit.FILES) == "queries fail"


@pytest.mark.parametrize(
    ("rows", "size", "groups", "files"),
    [
        (300_000_000, 8 * GB, 150, 30),
        (1_500_000_000, 150 * GB, 375, 25),
        (24_000_000_000, 3_000 * GB, 3_000, 300),
        (1, 1, 1, 1),
        (0, 0, 0, 0),
        (10_000_001, GB, 6, 2),
    ],
)
def test_the_mirror_of_a_table_as_fabric_cuts_it(rows: int, size: int, groups: int, files: int) -> None:
    source = replace(_SMALL, files=9_999, rows=rows, bytes=size)
    mirror = predicted_mirror(source)
    assert (mirror.table, mirror.row_groups, mirror.files) == ("orders (mirror, predicted)", groups, files)


def test_hidden_rows_do_not_come_to_the_mirror() -> None:
    mirror = predicted_mirror(replace(_SMALL, rows=25_000_000, hidden_rows=75_000_000, bytes=8 * GB))
    assert (mirror.bytes, mirror.files, mirror.hidden_rows) == (2 * GB, 3, 0)


def test_a_mirror_gains_files_with_rows() -> None:
    growth = Growth(files=500, rows=20_000_000, bytes=GB, days=7, commits=9)
    mirror = predicted_mirror(replace(_SMALL, growth=growth))
    assert mirror.growth == replace(growth, files=2)
    assert fit(_F2, mirror).days_left == 9  # of 10 GB, one is there


_UNLIMITED = 10**18


def _limits(sku: Sku) -> tuple[int, ...]:
    return sku.files, sku.row_groups, sku.rows, sku.model_bytes or _UNLIMITED


def test_a_larger_capacity_allows_no_less() -> None:
    assert [sku.name for sku in SKUS] == [f"F{2**power}" for power in range(1, 12)]
    for smaller, larger in pairwise(SKUS):
        assert all(a <= b for a, b in zip(_limits(smaller), _limits(larger), strict=True))


def test_limits_are_those_of_the_page() -> None:
    assert _limits(sku_of("F16")) == (1_000, 1_000, 300_000_000, 20 * GB)
    assert _limits(sku_of("F64")) == (5_000, 5_000, 1_500_000_000, _UNLIMITED)
    assert _limits(sku_of("F2048")) == (10_000, 10_000, 24_000_000_000, _UNLIMITED)
    assert date.fromisoformat(SOURCE_DATE) < date(2026, 9, 1)


def test_a_capacity_has_several_names() -> None:
    assert sku_of("p1") is sku_of("FT1") is sku_of("F64")
    with pytest.raises(ValueError, match=r"F3 is not a capacity; expected one of F2, F4, .*P5, F2048"):
        sku_of("F3")


@pytest.mark.parametrize(("days", "files_a_day", "warns"), [(7, 100, True), (7, 50, False), (0.5, 100, False)])
def test_a_limit_that_growth_reaches_within_a_week_is_a_warning(days: float, files_a_day: float, warns: bool) -> None:
    growing = replace(_SMALL, files=500, growth=Growth(files_a_day, None, 0, days, 10))
    result = check_guardrails(growing, _F2, DirectLakeMode.ONELAKE)
    assert result.passed is not warns
    assert ("the limit is 5.0 days away" in result.message) is warns
    assert result.is_warning is warns


def test_hidden_rows_that_may_count_are_a_warning() -> None:
    result = check_guardrails(replace(_SMALL, rows=300_000_000, hidden_rows=1), _F2, DirectLakeMode.ONELAKE)
    assert result.is_warning
    assert result.message.endswith("it is unknown whether hidden rows count")


def test_without_a_capacity_the_smallest_is_named() -> None:
    result = check_guardrails(replace(_SMALL, files=6_000), None, DirectLakeMode.ONELAKE)
    assert result.passed
    assert result.note == "orders: it fits into F512"
    assert result.metadata["smallest_sku"] == "F512"


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
    found = growth(log, since_ms, int(_START + now * _DAY))
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
    log = DeltaLog(str(tmp_path))
    footers = replace(FooterReader(log.uri, log.files).read([]), rows=np.array([10]))
    found = measure("t", log.snapshot(), footers)
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
    assert growth(log, _START, _START + 3_599_999) is None
    assert growth(log, _START, _START + 3_600_000) is not None
