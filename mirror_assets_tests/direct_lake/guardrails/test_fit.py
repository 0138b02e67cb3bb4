"""Tables against capacities: fits, does not, or can't be said; and when it will not any more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.direct_lake.guardrails.capacity_fit import Use, Verdict, fit, fit_all, smallest_of
from mirror_assets.direct_lake.guardrails.figures import TableFigures, predicted_mirror
from mirror_assets.direct_lake.guardrails.growth import Growth
from mirror_assets.direct_lake.guardrails.skus import GB, SKUS, Limit, Mode, consequence, sku_of

_SMALL = TableFigures("orders", files=10, row_groups=20, rows=1_000, hidden_rows=0, bytes=GB)
_F2, _F64 = sku_of("F2"), sku_of("F64")

_FIGURES = st.builds(
    TableFigures,
    table=st.just("t"),
    files=st.integers(0, 20_000),
    row_groups=st.none() | st.integers(0, 20_000),
    rows=st.none() | st.integers(0, 30 * 10**9),
    hidden_rows=st.integers(0, 10**9),
    bytes=st.integers(0, 100 * GB),
)


def _use(table: TableFigures, limit: Limit, sku: str = "F2") -> Use:
    return next(use for use in fit(sku_of(sku), [table]).uses if use.limit is limit)


def test_a_figure_at_its_limit_fits_and_one_above_does_not() -> None:
    at = TableFigures("t", files=1_000, row_groups=1_000, rows=300_000_000, hidden_rows=0, bytes=10 * GB)
    assert fit(_F2, [at]).verdict is Verdict.FITS
    for more in (
        replace(at, files=1_001),
        replace(at, row_groups=1_001),
        replace(at, rows=300_000_001),
        replace(at, bytes=10 * GB + 1),
    ):
        assert fit(_F2, [more]).verdict is Verdict.OVER
        assert [use.verdict for use in fit(_F2, [more]).uses].count(Verdict.OVER) == 1


def test_what_is_not_known_is_not_said_to_fit() -> None:
    unknown = replace(_SMALL, row_groups=None)
    assert fit(_F2, [unknown]).verdict is Verdict.UNSURE
    assert smallest_of(fit_all([unknown])) is None
    assert str(_use(unknown, Limit.ROW_GROUPS)) == "orders: an unknown number of row groups, 1,000 are allowed"
    assert fit(_F2, [replace(unknown, files=1_001)]).verdict is Verdict.OVER


def test_hidden_rows_alone_leave_it_open() -> None:
    hiding = replace(_SMALL, rows=300_000_000, hidden_rows=1)
    assert (_use(hiding, Limit.ROWS).verdict, _use(hiding, Limit.ROWS, "F64").verdict) == (
        Verdict.UNSURE,
        Verdict.FITS,
    )


def test_a_models_size_is_that_of_all_its_tables() -> None:
    tables = [replace(_SMALL, table=name, bytes=6 * GB) for name in ("a", "b")]
    assert fit(_F2, tables[:1]).verdict is Verdict.FITS
    assert fit(_F2, tables).verdict is Verdict.OVER
    assert smallest_of(fit_all(tables)) == sku_of("F16")
    model = fit(_F64, tables).uses[-1]
    assert (model.allowed, model.headroom_percent, str(model)) == (
        None,
        None,
        "the model: 12,000,000,000 bytes on disk, unlimited",
    )


def test_the_tightest_limit_is_named() -> None:
    tightest = fit(_F2, [replace(_SMALL, files=900)]).tightest
    assert tightest is not None
    assert (tightest.limit, tightest.headroom_percent) == (Limit.FILES, 10)
    assert str(tightest) == "orders: 900 files, 1,000 are allowed"
    assert _use(replace(_SMALL, files=1_500), Limit.FILES).headroom_percent == -50


def test_days_until_a_limit() -> None:
    growing = replace(_SMALL, growth=Growth(files=99, rows=1.0, bytes=-GB, days=7, commits=9))
    assert _use(growing, Limit.FILES).days_left == 10
    assert _use(growing, Limit.ROW_GROUPS).days_left == pytest.approx(980 / 198)  # two a file, as there are now
    assert _use(growing, Limit.MODEL_BYTES).days_left is None  # it shrinks
    assert fit(_F2, [growing]).days_left == pytest.approx(980 / 198)
    assert _use(replace(growing, files=1_001), Limit.FILES).days_left == 0
    assert fit(_F2, [_SMALL]).days_left is None
    # Of one table of the model it is not known.
    assert _use(growing, Limit.MODEL_BYTES, "F2").days_left is None
    grown = replace(growing, growth=Growth(files=0, rows=None, bytes=GB, days=7, commits=9))
    assert fit(_F2, [grown]).uses[-1].days_left == 9
    assert fit(_F2, [grown, _SMALL]).uses[-1].days_left is None


@given(st.lists(_FIGURES, min_size=1, max_size=3))
def test_what_fits_fits_into_every_larger_capacity(tables: list[TableFigures]) -> None:
    fits = [found.verdict is Verdict.FITS for found in fit_all(tables)]
    assert fits == sorted(fits)
    smallest = smallest_of(fit_all(tables))
    assert smallest == (SKUS[fits.index(True)] if any(fits) else None)


def test_over_a_limit_onelake_fails_and_sql_falls_back() -> None:
    assert [mode for mode in Mode if mode.fails] == [Mode.ONELAKE, Mode.SQL_ONLY]
    assert "framing fails" in consequence(Mode.ONELAKE, Limit.FILES)
    assert "queries to the table" in consequence(Mode.SQL, Limit.ROWS)
    assert "all queries" in consequence(Mode.SQL, Limit.MODEL_BYTES)
    assert consequence(Mode.SQL_ONLY, Limit.FILES) == "queries fail"


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
    assert mirror is not None
    assert (mirror.table, mirror.row_groups, mirror.files) == ("orders (mirror, predicted)", groups, files)


def test_hidden_rows_do_not_come_to_the_mirror() -> None:
    mirror = predicted_mirror(replace(_SMALL, rows=25_000_000, hidden_rows=75_000_000, bytes=8 * GB))
    assert mirror is not None
    assert (mirror.bytes, mirror.files, mirror.hidden_rows) == (2 * GB, 3, 0)
    assert predicted_mirror(replace(_SMALL, rows=None, hidden_rows=None)) is None


def test_a_mirror_gains_files_with_rows() -> None:
    growth = Growth(files=500, rows=20_000_000, bytes=GB, days=7, commits=9)
    mirror = predicted_mirror(replace(_SMALL, growth=growth))
    assert mirror is not None
    assert mirror.growth == replace(growth, files=2)
    assert fit(_F2, [mirror]).days_left == 9  # of 10 GB, one is there
