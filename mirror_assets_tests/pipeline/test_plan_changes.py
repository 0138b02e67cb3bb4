"""The choice of columns in mirror.yaml against what has landed."""

from __future__ import annotations

import pytest

from mirror_assets.config import OnDropColumn, TableSettings
from mirror_assets.delta.breaks import BreakKind
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.plan_changes import BaseState, Chosen, chosen_columns
from mirror_assets_tests.delta.handmade import column, schema_string

_SOURCE = schema_string(*(column(name) for name in ("id", "a", "b")))


def _settings(*columns: str, on_drop: OnDropColumn = OnDropColumn.KEEP) -> TableSettings:
    name = TableName("shop", "orders")
    return TableSettings(name=name, source="/lake", keys=("id",), columns=columns or None, on_drop_column=on_drop)


def _before(*columns: str, dropped: tuple[str, ...] = ()) -> BaseState:
    return BaseState(4, _SOURCE, "table-1", frozenset(columns), frozenset(dropped))


@pytest.mark.parametrize(
    ("table", "landed"),
    [(_settings(), ("id", "a", "b")), (_settings("a"), ("id", "a")), (_settings("a", "new"), ("id", "a"))],
)
def test_a_choice_that_landed_is_no_change(table: TableSettings, landed: tuple[str, ...]) -> None:
    assert chosen_columns(table, _before(*landed, dropped=("x",))) == Chosen(frozenset({"x"}))


@pytest.mark.parametrize("dropped", [(), ("b",)])
def test_a_column_that_is_put_in_needs_a_rebuild(dropped: tuple[str, ...]) -> None:
    stop = chosen_columns(_settings(), _before("id", "a", dropped=dropped)).stop
    assert stop is not None
    assert stop.kind is BreakKind.COLUMNS_CHANGED
    assert "`b`" in stop.message


def test_a_column_that_is_taken_out_is_like_a_dropped_one() -> None:
    before = _before("id", "a", "b", dropped=("x",))
    assert chosen_columns(_settings("a"), before) == Chosen(frozenset({"b", "x"}))
    stop = chosen_columns(_settings("a", on_drop=OnDropColumn.REBUILD), before).stop
    assert stop is not None
    assert "`b`" in stop.message
