"""What a condition keeps of its texts, which conditions have one cause, and which follow from another."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.alerts import conditions
from mirror_assets.alerts.conditions import Condition, Kind, may_pass
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.redaction import hide


def wrong(text: str = "it", code: str | None = None, kind: Kind = Kind.TABLE, check: str | None = None) -> Condition:
    return Condition(
        id=f"{kind} {check}", kind=kind, subject="s", what="fails", text=text, next_step=text, code=code, check=check
    )


def test_values_of_rows_are_left_out() -> None:
    text = "key column 'id' is NULL in 2 rows, such as row 0 «name 'Ada', day 2026-01-01», row 4 «name 'B"
    assert wrong(text).text == "key column 'id' is NULL in 2 rows, such as row 0 «…», row 4 «…»"
    assert wrong(text).next_step == wrong(text).text


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
    assert "secret" not in wrong(text, "store_denied").cause


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://b/t/customer=Ada%20L/day=2026/part-0.parquet", "s3://b/t/customer=…/day=…/part-0.parquet"),
        ("customer=Ada L/part-0.parquet is gone", "customer=…/part-0.parquet is gone"),
        ("the folder /lake/t/customer=Ada is empty", "the folder /lake/t/customer=… is empty"),
        ("file '/lake/customer=Ada/x', then y=1", "file '/lake/customer=…/x', then y=1"),
        ("keys=[id] in /lake/t", "keys=[id] in /lake/t"),
    ],
)
def test_partition_values_in_paths_are_left_out(text: str, shown: str) -> None:
    assert wrong(text).text == shown
    assert "Ada" not in wrong(text, "store_denied").cause


def test_a_store_that_refuses_is_one_cause_for_all_its_tables_and_another_store_another() -> None:
    def denied(table: str, account: str) -> str:
        return wrong(f"abfss://lake@{account}.dfs.core.windows.net/sales/{table} refuses.", "store_denied").cause

    assert denied("orders", "acme") == denied("items", "acme") != denied("orders", "other")
    assert wrong("it refuses.", "store_denied").is_shared


def test_other_faults_are_one_cause_by_their_code_or_check() -> None:
    assert wrong("a gap", "log_gap").cause == wrong("version 7 is missing", "log_gap").cause
    assert wrong(kind=Kind.CHECK, check="lag").cause != wrong(kind=Kind.CHECK, check="retention").cause
    assert not wrong("a gap", "log_gap").is_shared
    assert wrong("a NULL key", "checks_failed").cause == "checks_failed s"


def test_the_beginnings_and_endings_name_codes() -> None:
    codes = [code.value for code in ErrorCode]
    for pattern in (conditions._SHARED, conditions._PASSING):
        for part in pattern.pattern.removeprefix(".*").strip("()").split("|"):
            assert any(part in code for code in codes), part
    assert may_pass("source_unavailable")
    assert not may_pass("store_denied")
    assert not may_pass(None)


def test_the_next_step_is_split_where_errors_join_it() -> None:
    error = SettingError("the feed is off.", "switch it on.", code=ErrorCode.FEED_DISABLED)
    found = wrong(str(error))
    assert (found.text, found.next_step) == (error.what, error.next_step)
    assert wrong("no next step").next_step == "no next step"


@pytest.mark.parametrize(
    ("one", "other", "follows"),
    [
        (wrong(kind=Kind.RUN), wrong(kind=Kind.TABLE), True),
        (wrong(kind=Kind.RUN), wrong(kind=Kind.HELD), True),
        (wrong(kind=Kind.RUN), wrong(kind=Kind.CHECK, check="layout"), False),
        (wrong(kind=Kind.RUN), wrong(kind=Kind.REBUILD), False),
        (wrong(kind=Kind.CHECK, check="lag"), wrong(kind=Kind.TABLE), True),
        (wrong(kind=Kind.CHECK, check="lag"), wrong(kind=Kind.REBUILD), True),
        (wrong(kind=Kind.CHECK, check="retention"), wrong(kind=Kind.TABLE), False),
        (wrong(kind=Kind.TABLE), wrong(kind=Kind.HELD), True),
        (wrong(kind=Kind.TABLE), wrong(kind=Kind.CHECK, check="lag"), False),
        (wrong(kind=Kind.OVERDUE), wrong(kind=Kind.TICK), True),
    ],
)
def test_consequences(one: Condition, other: Condition, follows: bool) -> None:
    assert one.follows_from(other) is follows
