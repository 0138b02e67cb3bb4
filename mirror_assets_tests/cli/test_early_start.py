"""Spark starts in the background only where a slice waits, and as one for small slices only where few rows do."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.cli import early_start
from mirror_assets.pipeline.spark_sessions import SparkSettings
from mirror_assets_tests.lab import Lab


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each session that was opened is for small slices."""
    found: list[bool] = []
    monkeypatch.setattr(SparkSettings, "open", lambda _self, _owner, *, is_brief: found.append(is_brief))
    return found


@pytest.mark.parametrize(
    ("limit", "value", "is_brief"),
    [("_BRIEF_ROWS", 200_000, True), ("_BRIEF_ROWS", 1, False), ("_FEW_TABLES", 0, False)],
    ids=["few rows", "many rows", "many tables, which are not planned twice"],
)
def test_waiting_rows_start_a_brief_spark_or_one_that_optimises(
    waiting: Lab, opened: list[bool], monkeypatch: pytest.MonkeyPatch, limit: str, value: int, is_brief: bool
) -> None:
    monkeypatch.setattr(early_start, limit, value)
    early_start._start(waiting.config_file, (), early_start.waiting_rows)
    assert opened == [is_brief]


def test_rows_of_a_backlog_that_is_not_planned_yet_are_estimated(waiting: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = early_start.waiting_rows(waiting.context)
    monkeypatch.setattr("mirror_assets.pipeline.plan.SLICES_AHEAD", 1)
    estimated = early_start.waiting_rows(waiting.context)
    assert planned
    assert estimated
    assert planned / 3 < estimated < planned * 3


@pytest.mark.parametrize(
    ("rows_of", "expected"),
    [(early_start.waiting_rows, []), (None, [False]), (early_start.source_rows, [True])],
    ids=["a run without work", "a resident run", "a comparison of few rows"],
)
def test_a_command_on_a_mirrored_table_starts_the_spark_that_it_needs(
    mirrored: Lab, opened: list[bool], rows_of: early_start.RowsOf | None, expected: list[bool]
) -> None:
    early_start._start(mirrored.config_file, (), rows_of)
    assert opened == expected


def test_errors_are_left_to_the_command(tmp_path: Path, opened: list[bool]) -> None:
    early_start._start(tmp_path / "nowhere.yaml", (), early_start.waiting_rows)
    assert opened == []
