from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.config.variables import fill, fill_sql
from mirror_assets.errors import SettingError
from mirror_assets.redaction import redacted
from mirror_assets_tests.config.reading import read
from mirror_assets_tests.config.test_mistakes import BASE

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


@pytest.mark.parametrize(
    ("secret", "filled"),
    [("plain words", "f('plain words')"), ('it\'s \\ "here"', "f('it\\'s \\\\ \\\"here\\\"')")],
)
def test_a_value_in_an_expression_stands_for_itself_inside_quotes(secret: str, filled: str) -> None:
    assert fill_sql("where", "f('${SALT}')", {"SALT": secret}) == filled
    assert redacted(filled) == "f('${SALT}')"


def test_expressions_keep_their_references_until_they_are_used() -> None:
    settings = ("where: a = '${SALT}'", "columns: [b, {c: '${SALT}'}, {d: {sql: '${SALT}', type: int}}]")
    table = read(BASE + "".join(f"    {line}\n" for line in settings), SALT="a long secret").table("planes")
    assert table.where == "a = '${SALT}'"
    assert {name: column.sql for name, column in table.computed.items()} == {"c": "${SALT}", "d": "${SALT}"}
    assert table.listed_columns == ("b",)


def test_an_unset_variable_of_an_expression_is_an_error_where_it_is_used() -> None:
    with pytest.raises(SettingError, match=r"tables\.a\.where: the environment variable UNSET is not set"):
        fill_sql("tables.a.where", "a = '${UNSET}'", {})
