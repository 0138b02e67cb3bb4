"""Columns that are dropped, added again, or not mirrored at all: what the plan makes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.breaks import BreakKind, Needs
from mirror_assets.source.commits import Commit
from mirror_assets.source.planner import Plan, PlanRequest, plan_slices
from mirror_assets_tests.source.handmade import (
    Action,
    change,
    column,
    feed_metadata,
    plan_request,
    ranges,
    schema_string,
)

_ID, _A, _B = (column(name, mapped=(number, f"p{number}")) for number, name in enumerate(("id", "a", "b")))
_A_AGAIN = column("a", mapped=(7, "p7"))


def _alter(version: int, *columns: Action, operation: str = "DROP COLUMNS", rows: int = 0) -> Commit:
    return replace(change(version, rows=rows, metadata=feed_metadata(schema_string(*columns))), operation=operation)


def _request(*commits: Commit, columns: tuple[str, ...] | None = None, landed: tuple[Action, ...]) -> PlanRequest:
    return plan_request(commits, schema_string(*landed), Needs("table-1", ("id",), columns, keep_dropped=True))


def _plan(*commits: Commit, columns: tuple[str, ...] | None = None, landed: tuple[Action, ...] = (_ID, _A, _B)) -> Plan:
    return plan_slices(_request(*commits, columns=columns, landed=landed))


def _kind(plan: Plan) -> BreakKind | None:
    return plan.stop.kind if plan.stop else None


def test_a_dropped_column_cuts_the_slice_and_goes_on() -> None:
    plan = _plan(change(1), _alter(2, _ID, _B), change(3))
    assert (ranges(plan), plan.stop) == ([(1, 1), (2, 3)], None)


def test_a_dropped_column_is_a_break_where_a_rebuild_is_asked_for() -> None:
    request = _request(_alter(1, _ID, _B), landed=(_ID, _A, _B))
    dropping = replace(request, needs=replace(request.needs, keep_dropped=False))
    assert _kind(plan_slices(dropping)) is BreakKind.DROPPED_COLUMN


@pytest.mark.parametrize(
    ("commit", "kind"),
    [
        (_alter(1, _A, _B), BreakKind.KEY_CHANGED),
        (_alter(1, _ID, column("c", mapped=(1, "p1")), _B, operation="RENAME COLUMN"), BreakKind.RENAMED_COLUMN),
        (_alter(1, _ID, column("a", "string", mapped=(1, "p1"))), BreakKind.CHANGED_TYPE),
        (_alter(1, _ID, _B, operation="WRITE", rows=5), BreakKind.REPLACED),
        (_alter(1, _ID, _B, operation="RESTORE", rows=5), BreakKind.RESTORED_SCHEMA),
        (_alter(1, _ID, _B, operation="MERGE", rows=5), BreakKind.DROPPED_COLUMN),
    ],
)
def test_what_is_more_than_a_dropped_column_stays_a_break(commit: Commit, kind: BreakKind) -> None:
    assert _kind(_plan(commit)) is kind


def test_without_field_ids_a_missing_column_counts_as_dropped() -> None:
    """It may have been renamed: the log shows both alike."""
    plan = _plan(_alter(1, column("id")), landed=(column("id"), column("a")))
    assert _kind(plan) is BreakKind.DROPPED_COLUMN


def test_a_dropped_member_of_a_struct_counts_as_a_dropped_column() -> None:
    """It changes the text of rows that no commit has changed."""

    def nested(*members: Action) -> Action:
        return column("a", {"type": "struct", "fields": list(members)}, mapped=(1, "p1"))

    x, y = column("x", mapped=(8, "p8")), column("y", mapped=(9, "p9"))
    plan = _plan(_alter(1, _ID, nested(x)), landed=(_ID, nested(x, y)))
    assert _kind(plan) is BreakKind.DROPPED_COLUMN


@pytest.mark.parametrize("again", [_A_AGAIN, column("A", "string", mapped=(7, "p7"))])
@pytest.mark.parametrize("operation", ["ADD COLUMNS", "WRITE"])
def test_a_dropped_column_that_comes_back_is_a_break(again: Action, operation: str) -> None:
    plan = _plan(_alter(1, _ID, _B), change(2), _alter(3, _ID, _B, again, operation=operation))
    assert (ranges(plan), _kind(plan)) == ([(1, 2)], BreakKind.ADDED_AGAIN)
    assert plan.stop is not None
    assert "again, and the mirror has its old values" in plan.stop.message
    landed = _request(_alter(1, _ID, _B, again), landed=(_ID, _B))
    landed = replace(landed, needs=replace(landed.needs, dropped=frozenset({"a"})))
    assert _kind(plan_slices(landed)) is BreakKind.ADDED_AGAIN


def test_a_column_that_is_not_chosen_comes_and_goes_without_a_break() -> None:
    commits = (change(1), _alter(2, _ID, _A, _B), change(3), _alter(4, _ID, _A), _alter(5, _ID, _A, _B))
    plan = _plan(*commits, columns=("a",), landed=(_ID, _A))
    assert plan.stop is None
    assert ranges(plan) == [(1, 3), (4, 5)], "a new one needs no cut; one that goes can't be read across"


def test_another_column_that_takes_a_chosen_name_is_a_break() -> None:
    taken = _alter(2, _ID, column("a", mapped=(2, "p2")), operation="RENAME COLUMN")
    plan = _plan(_alter(1, _ID, _B), taken, columns=("a",))
    assert (ranges(plan), _kind(plan)) == ([(1, 1)], BreakKind.RENAMED_COLUMN)


@st.composite
def _histories(draw: st.DrawFn) -> tuple[Commit, ...]:
    """Commits that add, drop and rename columns of a few names, and some that change rows."""
    columns, commits = {0: "id", 1: "a"}, list[Commit]()
    for version in range(1, draw(st.integers(2, 8))):
        free = [name for name in "abc" if name not in columns.values()]
        others = [number for number in columns if number]
        kind = draw(st.sampled_from(["rows", *(["add"] if free else []), *(["drop", "rename"] if others else [])]))
        if kind == "add" or (kind == "rename" and free):
            number = 10 + version if kind == "add" else draw(st.sampled_from(others))
            columns[number] = draw(st.sampled_from(free))
        elif kind == "drop":
            del columns[draw(st.sampled_from(others))]
        altered = [column(name, mapped=(number, f"p{number}")) for number, name in columns.items()]
        commits.append(change(version) if kind == "rows" else _alter(version, *altered, operation=kind))
    return tuple(commits)


@given(_histories(), st.sampled_from([None, ("a",), ("a", "b")]))
def test_planning_on_from_any_slice_gives_the_rest_of_the_plan(
    commits: tuple[Commit, ...], columns: tuple[str, ...] | None
) -> None:
    """What the mirror has kept is known from what has landed: names that once landed and no longer do."""
    request = _request(*commits, columns=columns, landed=(_ID, _A))
    plan, seen = plan_slices(request), {"id", "a"}
    for index, done in enumerate(plan.slices):
        live = {field.name for field in done.schema.fields if columns is None or field.name in (*columns, "id")}
        seen |= live
        rest = replace(
            request,
            covered=done.last,
            commits=commits[done.last :],
            schema_string=done.schema_string,
            needs=replace(request.needs, dropped=frozenset(seen - live)),
        )
        assert plan_slices(rest) == Plan(plan.slices[index + 1 :], plan.stop)
