"""What landing costs on OneLake, by the formula and the table of docs/scaling.md."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.cost import daily_bytes, landing_cost
from mirror_assets.landing.names import attempt_id, attempt_ms
from mirror_assets_tests.landing.staging import TABLE, land_next
from mirror_assets_tests.pages import DOCS, table
from mirror_assets_tests.zones.memory import MemoryStore


def test_the_formula_is_the_page_s() -> None:
    text = (DOCS / "scaling.md").read_text(encoding="utf-8")
    formula = re.search(r"CU seconds ≈ (.+)", text)
    assert formula
    for slices, files in ((1, 0), (96, 96), (24, 100), (1440, 7)):
        names = {"files": files, "slices": slices}
        told = eval(re.sub(r"[^\w. ()+]", "*", formula[1]), {}, names)  # noqa: S307 the page is ours
        assert landing_cost(slices, files).capacity_seconds == pytest.approx(told)


def test_the_table_is_right() -> None:
    for _, slices, files, told, share in table(DOCS / "scaling.md", "Requests and cost on OneLake"):
        seconds = landing_cost(int(slices.replace(",", "")), int(files.replace(",", ""))).capacity_seconds
        assert seconds == pytest.approx(float(told.replace(",", "")), rel=0.05)
        assert seconds / 172_800 * 100 == pytest.approx(float(share.split()[0]), rel=0.1)


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_an_attempt_says_when_it_began(milliseconds: int, random: bytes) -> None:
    assert attempt_ms(attempt_id(milliseconds, random)) == milliseconds


def test_bytes_of_a_day_are_those_of_the_rows_that_landed_in_it() -> None:
    store = MemoryStore()
    landed = [land_next(store, last).manifest for last in range(3)]
    two_days_later = attempt_ms(landed[0].attempt) / 1000 + 2 * 86_400
    row = (landed[0].entries[0].bytes + landed[2].entries[0].bytes) / 4
    assert daily_bytes(store, TABLE, landed[2], two_days_later) == pytest.approx(row * 4 / 2)
    assert daily_bytes(store, TABLE, landed[0], two_days_later) is None
