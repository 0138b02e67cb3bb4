"""Appends only: what the plan makes of them, and where it stops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.source.batching import PartAssignment
from mirror_assets.source.breaks import BreakKind, Needs
from mirror_assets.source.commits import Commit
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.planner import PlanRequest, plan_slices
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    change,
    column,
    feed_metadata,
    file_action,
    info,
    metadata_action,
    plan_request,
    schema_string,
    write_commit,
)

_SCHEMA = schema_string(column("id"), column("name", "string"))


def _request(*commits: Commit, covered: int = 0) -> PlanRequest:
    return plan_request(commits, _SCHEMA, Needs("table-1", (), append_only=True), covered=covered)


def _rewrite(version: int, operation: str = "DELETE") -> Commit:
    return replace(change(version), rewrites=True, operation=operation)


def test_all_commits_of_a_slice_share_as_few_parts_as_hold_their_rows() -> None:
    commits = [change(1, rows=60), change(2, rows=0), change(3, rows=60), change(4, rows=70)]
    (slice_,) = plan_slices(_request(*commits)).slices
    assert (slice_.rows, slice_.parts, slice_.assignments) == (190, 2, (PartAssignment(4, 0, 2),))


def test_commits_that_add_nothing_make_no_part() -> None:
    (slice_,) = plan_slices(_request(change(1, rows=0), change(2, rows=0))).slices
    assert (slice_.rows, slice_.parts, slice_.assignments) == (0, 0, ())


def test_the_plan_stops_before_a_commit_that_changes_rows() -> None:
    plan = plan_slices(_request(change(1), _rewrite(2), change(3)))
    assert [(one.first, one.last) for one in plan.slices] == [(1, 1)]
    assert plan.stop is not None
    assert (plan.stop.version, plan.stop.kind) == (2, BreakKind.ROWS_CHANGED)
    assert "version 2 (DELETE)" in plan.stop.message


def test_a_feed_is_not_stopped_by_changed_rows() -> None:
    request = replace(_request(change(1), _rewrite(2)), needs=Needs("table-1", ("id",)))
    assert plan_slices(request).stop is None


def test_an_overwrite_with_another_schema_changes_rows_and_another_table_is_a_break() -> None:
    fewer = replace(_rewrite(1, "WRITE"), metadata=feed_metadata(schema_string(column("id"))))
    stop = plan_slices(_request(fewer)).stop
    assert stop is not None
    assert stop.kind is BreakKind.ROWS_CHANGED
    other = replace(_rewrite(1, "CREATE OR REPLACE TABLE"), metadata=feed_metadata(_SCHEMA, "table-2"))
    stop = plan_slices(_request(other)).stop
    assert stop is not None
    assert stop.kind is BreakKind.TABLE_REPLACED


@pytest.mark.parametrize(
    ("actions", "rewrites"),
    [
        ([info("WRITE"), file_action("add")], False),
        ([info("OPTIMIZE"), file_action("add", data=False), file_action("remove", "b.parquet", data=False)], False),
        ([info("DELETE"), file_action("remove")], True),
        ([info("UPDATE"), file_action("add"), file_action("remove", "b.parquet"), file_action("cdc")], True),
        ([info("DELETE"), file_action("add", deleted=2), file_action("remove")], True),
        ([info("WRITE", mode="Overwrite"), file_action("add"), file_action("remove", "b.parquet")], True),
        ([info("MERGE", numTargetRowsInserted="3"), file_action("add")], False),
    ],
)
def test_the_log_says_which_commits_change_rows(tmp_path: Path, actions: list[Action], *, rewrites: bool) -> None:
    write_commit(tmp_path, 0, [PROTOCOL, metadata_action(_SCHEMA)])
    write_commit(tmp_path, 1, actions)
    (commit,) = DeltaLog(str(tmp_path)).commits(1, 1)
    assert commit.rewrites is rewrites
