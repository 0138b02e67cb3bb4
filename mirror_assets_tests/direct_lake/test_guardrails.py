"""Tables against capacities: fits, does not, or can't be said; and when it will not any more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.config import DirectLakeMode
from mirror_assets.direct_lake.guardrails import (
    GB,
    SKUS,
    CapacityFit,
    FitVerdict,
    Growth,
    GuardrailFigures,
    Limit,
    LimitUse,
    consequence,
    fit,
    predicted_mirror,
    queries_fail,
    sku_of,
)

_SMALL = GuardrailFigures("orders", files=10, row_groups=20, rows=1_000, hidden_rows=0, bytes=GB)
_F2, _F64 = sku_of("F2"), sku_of("F64")

_FIGURES = st.builds(
    GuardrailFigures,
    table=st.just("t"),
    files=st.integers(0, 20_000),
    row_groups=st.integers(0, 20_000),
    rows=st.integers(0, 30 * 10**9),
    hidden_rows=st.integers(0, 10**9),
    bytes=st.integers(0, 100 * GB),
)


def _use(table: GuardrailFigures, limit: Limit, sku: str = "F2") -> LimitUse:
    return next(use for use in fit(sku_of(sku), table).uses if use.limit is limit)


def test_a_figure_at_its_limit_fits_and_one_above_does_not() -> None:
    at = GuardrailFigures("t", files=1_000, row_groups=1_000, rows=300_000_000, hidden_rows=0, bytes=10 * GB)
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
    assert CapacityFit.of(hiding).smallest == sku_of("F64")


def test_a_model_has_the_size_of_its_table() -> None:
    table = replace(_SMALL, bytes=12 * GB)
    assert fit(_F2, table).verdict is FitVerdict.OVER
    assert CapacityFit.of(table).smallest == sku_of("F16")
    model = fit(_F64, table).uses[-1]
    assert (model.allowed, model.headroom_percent, str(model)) == (
        None,
        None,
        "the model: 12,000,000,000 bytes on disk, unlimited",
    )


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
    assert _use(growing, Limit.MODEL_BYTES, "F2").days_left is None
    grown = replace(growing, growth=Growth(files=0, rows=None, bytes=GB, days=7, commits=9))
    assert fit(_F2, grown).uses[-1].days_left == 9


@given(_FIGURES)
def test_what_fits_fits_into_every_larger_capacity(table: GuardrailFigures) -> None:
    fitting = CapacityFit.of(table)
    fits = [found.verdict is FitVerdict.FITS for found in fitting.fits]
    assert fits == sorted(fits)
    assert fitting.smallest == (SKUS[fits.index(True)] if any(fits) else None)


def test_over_a_limit_onelake_fails_and_sql_falls_back() -> None:
    assert [mode for mode in DirectLakeMode if queries_fail(mode)] == [DirectLakeMode.ONELAKE, DirectLakeMode.SQL_ONLY]
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
