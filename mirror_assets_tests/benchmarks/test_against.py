"""Before and now: numbers of two files of results, turn by turn."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.against import measured_in, table
from benchmarks.curve import Curve, GrowthPoint
from benchmarks.result import Outcome, write_results
from mirror_assets_tests.benchmarks.costs import case_of


def _numbers(folder: Path, seconds: tuple[float, ...], python: int) -> dict[tuple[str, str], float]:
    curve = Curve("The plan", "commits", [GrowthPoint(100, 1.0, 1.0, python)])
    write_results([Outcome("changes", [case_of(land=seconds)], curves=[curve])], folder / "small.json")
    return dict(measured_in(json.loads((folder / "small.json").read_text(encoding="utf-8"))))


def test_a_file_of_results_gives_medians_and_points(tmp_path: Path) -> None:
    assert _numbers(tmp_path, (3.0, 1.0, 2.0), 7) == {
        ("a slice: land", "seconds"): 2.0,
        ("a slice: land", "cpu_seconds"): 4.0,
        ("The plan: 100 commits", "seconds"): 1.0,
        ("The plan: 100 commits", "cpu_seconds"): 1.0,
        ("The plan: 100 commits", "python"): 7,
        ("The plan: 100 commits", "driver_heap"): 0,
        ("The plan: 100 commits", "driver_rss"): 0,
        ("The plan: 100 commits", "executor_heap"): 0,
        ("The plan: 100 commits", "tasks"): 0,
        ("The plan: 100 commits", "widest"): 0,
        ("The plan: 100 commits", "threads"): 0,
    }


def test_ratios_are_those_of_turns(tmp_path: Path) -> None:
    before = [_numbers(tmp_path, (one,), 8) for one in (1.0, 4.0, 2.0)]
    now = [_numbers(tmp_path, (one,), 2) for one in (0.5, 2.0, 3.0)]
    _, _, first, *_ = lines = list(table(before, now))
    row = "| a slice: land | seconds | 2.00 (1.00 to 4.00) | 2.00 (0.50 to 3.00) | 0.50 (0.50 to 1.50) |"
    assert first == row
    assert (
        lines[-1]
        == "| The plan: 100 commits | python | 8.00 (8.00 to 8.00) | 2.00 (2.00 to 2.00) | 0.25 (0.25 to 0.25) |"
    )


def test_a_row_that_only_one_of_them_has_is_left_out(tmp_path: Path) -> None:
    one = _numbers(tmp_path, (1.0,), 1)
    assert len(list(table([one], [{}]))) == 2
