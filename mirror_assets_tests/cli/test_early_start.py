"""Spark starts in the background only where a slice waits, and as one for small slices only where few rows do."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.cli import early_start
from mirror_assets.pipeline.spark_sessions import SparkSettings
from mirror_assets.source.ranges import EVERYTHING
from mirror_assets_tests.lab import Lab


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each session that was opened is for small slices."""
    found: list[bool] = []
    monkeypatch.setattr(SparkSettings, "open", lambda _self, _owner, *, is_brief: found.append(is_brief))
    return found


def _start(path: Path | None) -> None:
    early_start._start(path, (), lambda table: early_start.waiting_rows(table, EVERYTHING))


def test_few_waiting_rows_start_a_brief_spark(waiting: Lab, opened: list[bool]) -> None:
    _start(waiting.config_file)
    assert opened == [True]


def test_many_waiting_rows_start_one_that_optimises(
    waiting: Lab, opened: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_start, "_BRIEF_ROWS", 1)
    _start(waiting.config_file)
    assert opened == [False]


def test_many_tables_are_not_planned_twice(waiting: Lab, opened: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_start, "_FEW_TABLES", 0)
    _start(waiting.config_file)
    assert opened == [False]


def test_no_spark_where_nothing_waits(mirrored: Lab, opened: list[bool]) -> None:
    _start(mirrored.config_file)
    assert opened == []


def test_errors_are_left_to_the_command(tmp_path: Path, opened: list[bool]) -> None:
    _start(tmp_path / "nowhere.yaml")
    assert opened == []


def test_a_run_that_stays_starts_one_that_optimises_in_any_case(mirrored: Lab, opened: list[bool]) -> None:
    early_start._start(mirrored.config_file, (), None)
    assert opened == [False]


def test_a_comparison_of_few_rows_starts_a_brief_spark(mirrored: Lab, opened: list[bool]) -> None:
    early_start._start(mirrored.config_file, (), early_start.source_rows)
    assert opened == [True]
