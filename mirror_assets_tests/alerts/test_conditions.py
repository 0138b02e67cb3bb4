"""What a condition keeps of the texts that it is given."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.alerts.causes import cause_of
from mirror_assets.alerts.conditions import Condition
from mirror_assets.config.alerts import Severity, Topic
from mirror_assets.redaction import hide


def wrong(text: str, **more: str) -> Condition:
    given = {"next_step": text, **more}
    return Condition(
        id="a", topic=Topic.CHECK, severity=Severity.ERROR, cause="c", subject="s", what="fails", text=text, **given
    )


def test_values_of_rows_are_left_out() -> None:
    text = "key column 'id' is NULL in 2 rows, such as row 0 «name 'Ada', day 2026-01-01», row 4 «name 'B"
    assert wrong(text).text == "key column 'id' is NULL in 2 rows, such as row 0 «…», row 4 «…»"
    assert wrong(text).next_step == wrong(text).text


def test_rows_with_other_values_are_the_same_cause() -> None:
    keys = {cause_of(None, "key_presence", f"row 0 «name '{name}'»", "t").key for name in ("Ada", "Bob")}
    assert len(keys) == 1


def test_a_secret_is_shown_as_its_variable() -> None:
    hide("LAKE_KEY", "a-secret-of-the-lake")
    assert wrong("refused: a-secret-of-the-lake").text == "refused: ${LAKE_KEY}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET https://a.example/x?sv=1&sig=aB%2Bc&se=2 failed", "GET https://a.example/x?sv=1&sig=…&se=2 failed"),
        ("s3: https://b.example/k?X-Amz-Signature=0a1b'", "s3: https://b.example/k?X-Amz-Signature=…'"),
        ("proxy http://me:secret@proxy.example:80/ refuses", "proxy http://me:…@proxy.example:80/ refuses"),
        ("abfss://lake@acme.dfs.core.windows.net/a: 403", "abfss://lake@acme.dfs.core.windows.net/a: 403"),
        ("at http://a.example:80, mail me@b.example", "at http://a.example:80, mail me@b.example"),
    ],
)
def test_an_address_shows_no_credentials(text: str, shown: str) -> None:
    assert wrong(text).text == shown
    assert "secret" not in cause_of("store_denied", "failing", text, "t").key


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\r\nc", "a b\nc"),
        ("turned \u202egnp.exe", "turned gnp.exe"),
        ("a name of a file: \udcff", "a name of a file: "),
        ("\x1b[31mred\x07", "[31mred"),
        ("שלום 👩‍🚀", "שלום 👩‍🚀"),
    ],
)
def test_what_can_not_be_shown_is_left_out(text: str, shown: str) -> None:
    assert wrong(text).text == shown


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=3000))
def test_any_text_can_be_kept_and_comes_back_as_it_was(text: str) -> None:
    kept = wrong(text)
    assert len(kept.text) <= 1500
    assert Condition.model_validate_json(kept.model_dump_json()) == kept
