"""Rows of the benchmarks' tables: ratios are those of rounds."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.result import Outcome, Spread, table
from mirror_assets_tests.benchmarks.costs import case_of


def test_a_ratio_is_taken_in_each_round() -> None:
    """A machine that is slow in one round is slow for both ways: the medians alone would say 2.0."""
    case = case_of(dump=(1.0, 10.0, 2.0), land=(0.5, 5.0, 4.0))
    assert case.compared("land") == Spread(median=0.5, low=0.5, high=2.0)


def test_a_peer_of_fewer_rounds_is_compared_by_its_median() -> None:
    case = case_of(dump=(2.0,), land=(1.0, 3.0, 2.0))
    assert case.compared("land") == Spread(median=1.0, low=0.5, high=1.5)


def test_each_way_is_compared_with_the_baseline_and_other_peers() -> None:
    case = replace(case_of(dump=(4.0,), limit=(2.0,), land=(3.0,)), peers=("limit",))
    assert {name: ratio.median for name, ratio in Outcome("changes", [case]).ratios().items()} == {
        "a slice: limit ÷ dump": 0.5,
        "a slice: land ÷ dump": 0.75,
        "a slice: land ÷ limit": 1.5,
    }


def test_the_table_has_a_row_for_each_way() -> None:
    lines = table("change slices", [Outcome("changes", [case_of(dump=(1.0, 3.0), land=(0.5, 1.5))])]).splitlines()
    assert lines[0] == "== change slices =="
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[3:]]
    assert cells == [
        ["a slice: dump", "2.00", "1.00 to 3.00", "4.0", "", "1 + 1", ""],
        ["a slice: land", "1.00", "0.50 to 1.50", "2.0", "", "1 + 1", "0.50 (0.50 to 0.50) of dump"],
    ]
