"""What landing costs on OneLake, by the formula and the table of docs/scaling.md."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.cost import landing_cost
from mirror_assets.landing.names import attempt_id, attempt_ms
from mirror_assets_tests.pages import DOCS, table


def test_the_formula_is_the_page_s() -> None:
    text = (DOCS / "scaling.md").read_text(encoding="utf-8")
    formula = re.search(r"CU seconds ≈ (.+)", text)
    assert formula
    for slices, files in ((1, 0), (96, 96), (24, 100), (1440, 7)):
        names = {"files": files, "slices": slices}
        told = eval(re.sub(r"[^\w. ()+]", "*", formula[1]), {}, names)  # noqa: S307 the page is ours
        assert landing_cost(slices, files).capacity_seconds == pytest.approx(told)


def test_the_table_is_right() -> None:
    for _, slices, files, told, share in table(DOCS / "scaling.md", "Requests and what they cost on OneLake"):
        seconds = landing_cost(int(slices.replace(",", "")), int(files.replace(",", ""))).capacity_seconds
        assert seconds == pytest.approx(float(told.replace(",", "")), rel=0.05)
        assert seconds / 172_800 * 100 == pytest.approx(float(share.split()[0]), rel=0.1)


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_an_attempt_says_when_it_began(milliseconds: int, random: bytes) -> None:
    assert attempt_ms(attempt_id(milliseconds, random)) == milliseconds
