"""Which faults have one cause."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.alerts.causes import cause_of, is_transient, split_next
from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.consequences import without_consequences
from mirror_assets.config.alerts import Severity, Topic
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import Kind, asset_key


def test_a_store_that_refuses_is_one_cause_for_all_its_tables_and_another_store_another() -> None:
    def denied(table: str, account: str) -> str:
        text = f"sales.{table}: abfss://lake@{account}.dfs.core.windows.net/sales/{table} refuses 3 times."
        return cause_of("store_denied", "failing", text, f"sales.{table}").key

    assert denied("orders", "acme") == denied("items", "acme") != denied("orders", "other")
    assert "abfss://lake@acme.dfs.core.windows.net" in denied("orders", "acme")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sales.a: version 7 has waited 1,200 s", "sales.b: version 12 has waited 3 s"),
        (
            "a/part-1 is gone, of run 0a1b2c3d-0000-1111-2222-333344445555",
            "b/part-2 is gone, of run ffffffff-0000-1111-2222-333344445555",
        ),
        ("/lake/a/_delta_log can't be read", "/lake/b/_delta_log can't be read"),
    ],
)
def test_messages_that_differ_in_names_numbers_paths_and_ids_are_one_cause(one: str, other: str) -> None:
    causes = [cause_of("log_gap", "failing", text, f"sales.{name}") for text, name in ((one, "a"), (other, "b"))]
    assert causes[0] == causes[1]


def test_other_words_are_another_cause() -> None:
    keys = {cause_of(None, "key_presence", f"column {name} has NULL", "sales.a").key for name in ("id", "day")}
    assert len(keys) == 2


def test_only_a_fault_outside_of_the_table_takes_in_what_comes_later() -> None:
    assert cause_of("token_refused", "failing", "", "t").joins
    assert not cause_of("checks_failed", "failing", "", "t").joins
    assert not cause_of(None, "lag", "", "t").joins


@given(st.text(), st.text())
def test_any_text_has_a_cause(text: str, subject: str) -> None:
    assert cause_of(None, "lag", text, subject) == cause_of(None, "lag", text, subject)


def test_a_message_is_split_where_the_errors_join_it() -> None:
    error = SettingError("the feed is off.", "switch it on.", code=ErrorCode.FEED_DISABLED)
    assert split_next(str(error)) == (error.what, error.next_step)
    assert split_next("no next step") == ("no next step", "")
    assert is_transient("source_unavailable")
    assert not is_transient("store_denied")
    assert not is_transient(None)


def _wrong(key: str, topic: Topic, subject: str = "sales.a") -> Condition:
    return Condition(id=key, topic=topic, severity=Severity.ERROR, cause=key, subject=subject, what="", text="")


def _check(kind: Kind, name: str, table: str = "a") -> str:
    """The condition's id, as `alert_checks` makes it of an asset's key."""
    return f"check:{asset_key(kind, TableName('sales', table)).to_user_string()}:{name}"


_TABLE = _wrong("zone:table:sales.a", Topic.TABLE)
_LAG = _wrong(_check(Kind.LANDING_ZONE, "lag"), Topic.CHECK)
_RUN = _wrong("run:mirror_all:all_mirrored:sales.a", Topic.RUN)
_STAGED = _wrong(_check(Kind.CHANGE_FEED, "key_presence"), Topic.CHECK)
_RETENTION = _wrong(_check(Kind.SOURCE, "retention"), Topic.CHECK)
_OTHER = _wrong(_check(Kind.LANDING_ZONE, "lag", "b"), Topic.CHECK, "sales.b")


def _left(*conditions: Condition, told: tuple[Condition, ...] = ()) -> list[str]:
    return list(without_consequences({one.id: one for one in conditions}, {one.id for one in told}))


def test_what_follows_from_a_table_that_fails_is_left_out() -> None:
    assert _left(_TABLE, _LAG, _RUN, _STAGED, _RETENTION, _OTHER) == [_TABLE.id, _RETENTION.id, _OTHER.id]


def test_whichever_is_told_first_of_a_slice_that_may_not_land_is_the_message() -> None:
    failed = _TABLE.model_copy(update={"code": ErrorCode.CHECKS_FAILED.value})
    assert _left(failed, _STAGED) == [failed.id]
    assert _left(failed, _STAGED, told=(_STAGED,)) == [_STAGED.id]
    assert _left(failed, _STAGED, told=(failed,)) == [failed.id]
    assert _left(_TABLE, _STAGED, told=(_STAGED,)) == [_TABLE.id, _STAGED.id], "it fails for another reason"


def test_a_table_that_is_held_fails_by_that() -> None:
    held = _wrong(_check(Kind.LANDING_ZONE, "not_held"), Topic.HELD)
    assert _left(_TABLE, held, _LAG, _RUN) == [held.id]


def test_what_stands_alone_is_told() -> None:
    for one in (_TABLE, _LAG, _RUN, _STAGED):
        assert _left(one) == [one.id]
    assert _left(_LAG, _RUN) == [_LAG.id, _RUN.id]
    rebuild = _wrong("zone:rebuild:sales.a", Topic.REBUILD)
    assert _left(rebuild, _RUN) == [rebuild.id, _RUN.id]


def test_what_was_told_before_is_not_taken_back() -> None:
    assert _left(_TABLE, _LAG, told=(_LAG,)) == [_TABLE.id, _LAG.id]
