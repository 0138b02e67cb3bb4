"""Parts of a slice. The cuts into slices have their properties in test_plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_assets.source.batching import Limits, PartAssignment, assign_parts, parts_for, rows_of_part
from mirror_assets.source.commits import Commit
from mirror_assets_tests.source.handmade import change


@pytest.mark.parametrize("limits", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_a_limit_of_nothing_is_refused(limits: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Limits(*limits)


def test_small_commits_share_a_part_and_large_ones_have_their_own() -> None:
    rows = [4, 6, 1, 25, 5, 0, 5, 10, 11, 12]
    mixing = [replace(change(version, rows=n), mixes=True) for version, n in enumerate(rows)]
    assignments = assign_parts(mixing, 10)
    assert assignments == (
        PartAssignment(0, 0, 1),
        PartAssignment(1, 0, 1),
        PartAssignment(2, 1, 1),
        PartAssignment(3, 2, 3),
        PartAssignment(4, 5, 1),
        PartAssignment(6, 5, 1),
        PartAssignment(7, 6, 1),
        PartAssignment(8, 7, 2),
        PartAssignment(9, 9, 2),
    )


def test_a_commit_that_needs_no_pairing_has_parts_to_itself_from_an_eighth_of_one_on() -> None:
    commits = [change(version, rows=n) for version, n in enumerate([1, 3, 1, 1, 2, 33])]
    assert assign_parts(commits, 16) == (
        PartAssignment(0, 0, 1),
        PartAssignment(1, 1, 1, unpaired=True),
        PartAssignment(2, 2, 1),
        PartAssignment(3, 2, 1),
        PartAssignment(4, 2, 1),
        PartAssignment(5, 3, 3, unpaired=True),
    )


@pytest.mark.parametrize(("rows", "unpaired"), [(7, False), (8, True)])
def test_a_commit_of_more_than_an_eighth_of_a_part_has_one_to_itself(rows: int, *, unpaired: bool) -> None:
    assert assign_parts([change(0, rows=rows)], 56) == (PartAssignment(0, 0, 1, unpaired=unpaired),)


def test_a_commit_whose_rows_are_guessed_as_none_still_has_a_part() -> None:
    assert assign_parts([Commit(3, 0, "RESTORE", changes_data=True)], 10) == (PartAssignment(3, 0, 1),)


@pytest.mark.parametrize(("rows", "parts"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
def test_parts_for_rows(rows: int, parts: int) -> None:
    assert parts_for(rows, 10) == parts


@pytest.mark.parametrize(
    ("columns", "rows"),
    [(0, 1_000_000), (1, 1_000_000), (25, 1_000_000), (26, 961_538), (250, 100_000), (30_000_000, 1)],
)
def test_the_parts_of_a_wide_table_hold_fewer_rows(columns: int, rows: int) -> None:
    assert rows_of_part(1_000_000, columns) == rows
    assert rows_of_part(10, 250) == 10


def test_a_part_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="target_rows"):
        parts_for(1, 0)
