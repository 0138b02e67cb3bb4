from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.config.variables import fill

ENVIRONMENT = {"LAKE": "/lake", "EMPTY": "", "BRACES": "${LAKE}"}


@given(st.text())
def test_a_text_without_references_stays_as_it_is(text: str) -> None:
    filled = fill(text.replace("${", ""), ENVIRONMENT)
    assert (filled.text, filled.from_environment, filled.problems) == (text.replace("${", ""), False, ())


@pytest.mark.parametrize(
    ("text", "filled", "from_environment"),
    [
        ("${LAKE}", "/lake", True),
        ("${LAKE}/planes", "/lake/planes", True),
        ("a${LAKE}b${LAKE}", "a/lakeb/lake", True),
        ("${LAKE:-/x}", "/lake", False),
        ("${UNSET:-/x}", "/x", False),
        ("${UNSET:-}", "", True),
        ("${EMPTY}", "", True),
        ("${EMPTY:-/x}", "/x", False),
        ("${BRACES}", "${LAKE}", True),
        ("$LAKE and }{", "$LAKE and }{", False),
    ],
)
def test_references(text: str, filled: str, *, from_environment: bool) -> None:
    result = fill(text, ENVIRONMENT)
    assert (result.text, result.from_environment, result.problems) == (filled, from_environment, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("${UNSET}/x", "the environment variable UNSET is not set; set it, or write ${UNSET:-default}"),
        ("${}", "`${` must begin a reference; write ${NAME} or ${NAME:-default}"),
        ("${LAKE", "`${` must begin a reference; write ${NAME} or ${NAME:-default}"),
        ("${1LAKE}", "`${` must begin a reference; write ${NAME} or ${NAME:-default}"),
    ],
)
def test_bad_references(text: str, problem: str) -> None:
    assert fill(text, ENVIRONMENT).problems == (problem,)


def test_every_bad_reference_is_reported() -> None:
    assert len(fill("${A}${B}${", {}).problems) == 3
