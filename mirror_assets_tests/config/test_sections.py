"""How often Dagster does what it does by itself."""

from __future__ import annotations

import pytest

from mirror_assets.config.sections import AutomationConfig


@pytest.mark.parametrize(
    ("tables", "minutes"), [(1, 5), (100, 5), (101, 6), (200, 10), (500, 30), (1000, 30), (50_000, 30)]
)
def test_checks_of_many_tables_run_less_often(tables: int, minutes: int) -> None:
    assert AutomationConfig().checks_minutes(tables) == minutes


@pytest.mark.parametrize("setting", [5, 60, None])
def test_checks_run_as_often_as_they_are_set_to(setting: int | None) -> None:
    assert AutomationConfig(checks_every_minutes=setting).checks_minutes(500) == setting
