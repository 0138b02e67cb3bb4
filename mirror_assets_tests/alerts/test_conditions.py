"""What a condition keeps of its texts, which conditions have one cause, and which follow from another."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given
from pydantic import TypeAdapter

from mirror_assets.alerts import conditions
from mirror_assets.alerts.conditions import Condition, ConditionKind, may_pass, with_next
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.redaction import hide


def wrong(
    text: str = "it", code: str | None = None, kind: ConditionKind = ConditionKind.TABLE, check: str | None = None
) -> Condition:
    return Condition(f"{kind} {check}", kind, "s", "fails", text, code=code, check=check)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # values of rows
        (
            "key column 'id' is NULL in 2 rows, such as row 0 «name 'Ada', day 2026-01-01», row 4 «name 'B",
            "key column 'id' is NULL in 2 rows, such as row 0 «…», row 4 «…»",
        ),
        # credentials in addresses
        ("GET https://a.example/x?sv=1&sig=aB%2Bc&se=2 failed", "GET https://a.example/x?sv=1&sig=…&se=2 failed"),
        ("s3: https://b.example/k?X-Amz-Signature=0a1b'", "s3: https://b.example/k?X-Amz-Signature=…'"),
        ("proxy http://me:secret@proxy.example:80/ refuses", "proxy http://me:…@proxy.example:80/ refuses"),
        ("abfss://lake@acme.dfs.core.windows.net/a: 403", "abfss://lake@acme.dfs.core.windows.net/a: 403"),
        ("at http://a.example:80, mail me@b.example", "at http://a.example:80, mail me@b.example"),
        # partition values in paths
        ("s3://b/t/customer=Ada%20L/day=2026/part-0.parquet", "s3://b/t/customer=…/day=…/part-0.parquet"),
        ("customer=Ada L/part-0.parquet is gone", "customer=…/part-0.parquet is gone"),
        ("the folder /lake/t/customer=Ada is empty", "the folder /lake/t/customer=… is empty"),
        ("file '/lake/customer=Ada/x', then y=1", "file '/lake/customer=…/x', then y=1"),
        ("keys=[id] in /lake/t", "keys=[id] in /lake/t"),
        # characters that can't be shown
        ("a\tb\r\nc", "a b\nc"),
        ("turned \u202egnp.exe", "turned gnp.exe"),
        ("a name of a file: \udcff", "a name of a file: "),
        ("\x1b[31mred\x07", "[31mred"),
        ("שלום 👩‍🚀", "שלום 👩‍🚀"),
    ],
)
def test_private_values_and_characters_that_can_not_be_shown_are_left_out(text: str, shown: str) -> None:
    assert wrong(text).text == shown
    cause = wrong(text, "store_denied").cause
    assert "secret" not in cause
    assert "Ada" not in cause


def test_a_secret_is_shown_as_its_variable() -> None:
    hide("LAKE_KEY", "a-secret-of-the-lake")
    assert wrong("refused: a-secret-of-the-lake").text == "refused: ${LAKE_KEY}"


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=3000))
def test_any_text_can_be_kept_and_comes_back_as_it_was(text: str) -> None:
    kept = wrong(text)
    assert len(kept.text) <= 1500
    known = TypeAdapter(Condition)
    assert known.validate_json(known.dump_json(kept)) == kept


def test_a_store_that_refuses_is_one_cause_for_all_its_tables_and_another_store_another() -> None:
    def denied(table: str, account: str) -> str:
        return wrong(f"abfss://lake@{account}.dfs.core.windows.net/sales/{table} refuses.", "store_denied").cause

    assert denied("orders", "acme") == denied("items", "acme") != denied("orders", "other")
    assert wrong("it refuses.", "store_denied").is_shared


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sales.a: version 7 has waited 1,200 s", "sales.b: version 12 has waited 3 s"),
        ("part-1 is gone, of run 0a1b2c3d-0000-1111-2222-333344445555", "part-2 is gone, of run ffffffffffff"),
        ("/lake/a/_delta_log can't be read", "/lake/b/_delta_log  can't be read"),
        ("row 0 «name 'Ada'» of a", "row 0 «name 'Bob'» of b"),
    ],
)
def test_messages_that_differ_in_names_numbers_paths_ids_and_values_are_one_cause(one: str, other: str) -> None:
    causes = [
        Condition("id", ConditionKind.CHECK, f"sales.{name}", "fails", text, check="lag").cause
        for text, name in ((one, "a"), (other, "b"))
    ]
    assert causes[0] == causes[1]


def test_other_messages_codes_and_checks_are_other_causes() -> None:
    found = {
        wrong(f"column {name} has NULL", kind=ConditionKind.CHECK, check="key_presence").cause for name in ("id", "day")
    }
    found |= {wrong("it", kind=ConditionKind.CHECK, check="lag").cause, wrong("it", "log_gap").cause, wrong("it").cause}
    assert len(found) == 5
    assert not wrong("a gap", "log_gap").is_shared
    assert wrong("a NULL key", "checks_failed").cause == "checks_failed s"


@given(st.text(), st.text())
def test_any_text_has_a_cause(text: str, subject: str) -> None:
    one = Condition("id", ConditionKind.CHECK, subject, "fails", text)
    assert one.cause == one.cause


def test_the_beginnings_and_endings_name_codes() -> None:
    codes = [code.value for code in ErrorCode]
    for pattern in (conditions._SHARED, conditions._PASSING):
        for part in pattern.pattern.removeprefix(".*").strip("()").split("|"):
            assert any(part in code for code in codes), part
    assert may_pass("source_unavailable")
    assert not may_pass("store_denied")
    assert not may_pass(None)


def test_a_next_step_is_added_where_the_error_has_none() -> None:
    error = SettingError("the feed is off.", "switch it on.", code=ErrorCode.FEED_DISABLED)
    assert with_next(str(error), "read the docs.") == str(error)
    assert with_next("the feed is off.", "read the docs.") == "the feed is off. Next: read the docs."


@pytest.mark.parametrize(
    ("one", "other", "follows"),
    [
        (wrong(kind=ConditionKind.RUN), wrong(kind=ConditionKind.TABLE), True),
        (wrong(kind=ConditionKind.RUN), wrong(kind=ConditionKind.HELD), True),
        (wrong(kind=ConditionKind.RUN), wrong(kind=ConditionKind.CHECK, check="layout"), False),
        (wrong(kind=ConditionKind.RUN), wrong(kind=ConditionKind.REBUILD), False),
        (wrong(kind=ConditionKind.CHECK, check="lag"), wrong(kind=ConditionKind.TABLE), True),
        (wrong(kind=ConditionKind.CHECK, check="lag"), wrong(kind=ConditionKind.REBUILD), True),
        (wrong(kind=ConditionKind.CHECK, check="retention"), wrong(kind=ConditionKind.TABLE), False),
        (wrong(kind=ConditionKind.TABLE), wrong(kind=ConditionKind.HELD), True),
        (wrong(kind=ConditionKind.TABLE), wrong(kind=ConditionKind.CHECK, check="lag"), False),
        (wrong(kind=ConditionKind.OVERDUE), wrong(kind=ConditionKind.TICK), True),
    ],
)
def test_consequences(one: Condition, other: Condition, follows: bool) -> None:
    assert one.follows_from(other) is follows
