"""The choice of columns in mirror.yaml against what has landed."""

from __future__ import annotations

import pytest

from mirror_assets.config.setting_values import OnDropColumn
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.plan_changes import BaseState, dropped_columns
from mirror_assets.source.breaks import Break, BreakKind
from mirror_assets_tests.source.handmade import column, schema_string

_SOURCE = schema_string(*(column(name) for name in ("id", "a", "b")))


def _settings(*columns: str, on_drop: OnDropColumn = OnDropColumn.KEEP) -> TableSettings:
    name = TableName("shop", "orders")
    return TableSettings(name=name, source="/lake", keys=("id",), columns=columns or None, on_drop_column=on_drop)


def _before(*columns: str, dropped: tuple[str, ...] = ()) -> BaseState:
    return BaseState(4, _SOURCE, "table-1", dict.fromkeys(columns), dropped=frozenset(dropped))


@pytest.mark.parametrize(
    ("table", "landed", "dropped"),
    [
        (_settings(), ("id", "a", "b"), {"x"}),
        (_settings("a"), ("id", "a"), {"x"}),
        (_settings("a", "new"), ("id", "a"), {"x"}),
        (_settings("a"), ("id", "a", "b"), {"x", "b"}),
    ],
)
def test_a_column_that_is_removed_is_like_a_dropped_one(
    table: TableSettings, landed: tuple[str, ...], dropped: set[str]
) -> None:
    assert dropped_columns(table, _before(*landed, dropped=("x",))) == frozenset(dropped)


@pytest.mark.parametrize(
    ("table", "before"),
    [
        (_settings(), _before("id", "a")),
        (_settings(), _before("id", "a", dropped=("b",))),
        (_settings("a", on_drop=OnDropColumn.REBUILD), _before("id", "a", "b")),
    ],
)
def test_an_added_column_needs_a_rebuild_and_a_removed_one_if_the_settings_say_so(
    table: TableSettings, before: BaseState
) -> None:
    stop = dropped_columns(table, before)
    assert isinstance(stop, Break)
    assert (stop.version, stop.kind) == (5, BreakKind.COLUMNS_CHANGED)
    assert "`b`" in stop.message
