from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.actions import Protocol
from mirror_assets.source.batching import Limits, PartAssignment
from mirror_assets.source.breaks import BreakKind, Needs
from mirror_assets.source.commits import Commit, SourceState
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.planner import Plan, PlanRequest, plan_slices, snapshot_slice
from mirror_assets.source.schema import parse_schema
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
    ranges,
    schema_string,
    write_commit,
)

_V0 = schema_string(column("id"))
_V1 = schema_string(column("id"), column("a"))
_V2 = schema_string(column("id"), column("a"), column("b"))
_OTHER = schema_string(column("key"))
_WIDE = Limits(1000, 10_000, 10_000)
_NEEDS = Needs("table-1", ("id",))


def _request(
    commits: list[Commit], covered: int = 4, limits: Limits = _WIDE, boundaries: frozenset[int] = frozenset()
) -> PlanRequest:
    request = plan_request(commits, _V0, _NEEDS, covered=covered)
    return replace(request, epoch=2, limits=limits, target_rows=25, boundaries=boundaries)


def test_nothing_is_pending_at_the_tip() -> None:
    assert plan_slices(_request([])) == Plan(())


def test_a_slice_says_what_it_holds() -> None:
    estimated = replace(change(7, rows=60, size=5), rows_exact=False)
    (planned,) = plan_slices(_request([change(5), change(6, rows=0), estimated])).slices
    assert (planned.epoch, planned.first, planned.last, planned.is_snapshot) == (2, 5, 7, False)
    assert (planned.rows, planned.bytes, planned.rows_exact) == (70, 205, False)
    assert (planned.first_commit_ms, planned.last_commit_ms) == (1005, 1007)
    assert (planned.schema, planned.table_id) == (parse_schema(_V0), "table-1")
    assert planned.assignments == (PartAssignment(5, 0, 1, unpaired=True), PartAssignment(7, 1, 3, unpaired=True))
    assert planned.parts == 4


def test_commits_are_taken_as_slices_need_them() -> None:
    taken = list[int]()

    def commits() -> Iterator[Commit]:
        for version in range(5, 25):
            taken.append(version)
            yield change(version, rows=5_000)

    request = replace(_request([]), tip=24, commits=commits())
    plan = plan_slices(request, at_most=3)
    assert ranges(plan) == [(5, 6), (7, 8), (9, 10)]
    assert taken == list(range(5, 12)), "the commits of three slices, and the one that shows where the last ends"
    whole = plan_slices(_request([change(version, rows=5_000) for version in range(5, 25)]))
    assert plan.slices == whole.slices[:3]


def test_the_commits_of_two_slices_are_held_at_most() -> None:
    alive = WeakSet[Commit]()
    most = 0

    def commits() -> Iterator[Commit]:
        nonlocal most
        for version in range(5, 105):
            commit = change(version, rows=2_500)
            alive.add(commit)
            most = max(most, len(alive))
            yield commit

    plan = plan_slices(replace(_request([]), tip=104, commits=commits()))
    assert len(plan.slices) == 25
    assert most <= 2 * 4 + 2, "a slice and the next, and the commit that shows where it ends"


def test_a_break_is_known_when_the_slices_before_it_are() -> None:
    commits = [change(5), change(6), change(7, metadata=feed_metadata(_OTHER)), change(8)]
    plan = plan_slices(_request(commits), at_most=1)
    assert (ranges(plan), plan.stop is not None) == ([(5, 6)], True)
    assert plan_slices(_request(commits, limits=Limits(1, 10, 10**6)), at_most=1).stop is None


def test_a_slice_has_the_files_that_its_limit_allows() -> None:
    commits = [replace(change(version), named_files=files) for version, files in enumerate([4, 6, 1, 30, 9], 5)]
    assert ranges(plan_slices(_request(commits, limits=replace(_WIDE, max_files=10)))) == [
        (5, 6),
        (7, 7),
        (8, 8),
        (9, 9),
    ]


def test_commits_without_changes_make_a_slice_without_parts() -> None:
    (planned,) = plan_slices(_request([change(5, rows=0), change(6, rows=0)])).slices
    assert (planned.first, planned.last, planned.parts, planned.assignments) == (5, 6, 0, ())


def test_a_slice_has_one_schema() -> None:
    commits = [
        change(5),
        change(6, metadata=feed_metadata(_V1)),
        change(7),
        change(8, metadata=feed_metadata(schema_string(column("id", metadata={"comment": "x"}), column("a")))),
        change(9, metadata=feed_metadata(_V2)),
    ]
    plan = plan_slices(_request(commits))
    assert ranges(plan) == [(5, 5), (6, 8), (9, 9)]
    assert [planned.schema for planned in plan.slices] == [parse_schema(text) for text in (_V0, _V1, _V2)]
    assert "comment" in plan.slices[1].schema_string


def test_it_stops_before_a_break() -> None:
    commits = [change(5), change(6), change(7, metadata=feed_metadata(_OTHER)), change(8)]
    plan = plan_slices(_request(commits))
    assert ranges(plan) == [(5, 6)]
    assert plan.stop is not None
    assert (plan.stop.version, plan.stop.kind) == (7, BreakKind.REPLACED)


def test_another_file_under_the_same_name_is_a_break() -> None:
    plan = plan_slices(_request([change(5), replace(change(6), overwritten="a.parquet"), change(7)]))
    assert ranges(plan) == [(5, 5)]
    assert plan.stop is not None
    assert (plan.stop.version, plan.stop.kind) == (6, BreakKind.FILE_OVERWRITTEN)
    assert "another file under the same name, a.parquet" in plan.stop.message


def test_a_break_at_the_first_pending_commit_leaves_no_slice() -> None:
    plan = plan_slices(_request([change(5, metadata=feed_metadata(_V0, "table-2"))]))
    assert plan.slices == ()
    assert plan.stop is not None
    assert (plan.stop.version, plan.stop.kind) == (5, BreakKind.TABLE_REPLACED)


def test_a_table_recreated_at_the_same_place_is_noticed_without_any_metadata_action() -> None:
    plan = plan_slices(replace(_request([change(5), change(6)]), tip_table_id="table-2"))
    assert plan.slices == ()
    assert plan.stop is not None
    assert (plan.stop.version, plan.stop.kind) == (5, BreakKind.TABLE_REPLACED)


def test_commits_before_a_replacement_are_mirrored_when_they_are_known_to_be_the_old_tables() -> None:
    commits = [change(5), change(6, metadata=feed_metadata(_V0, "table-2"))]
    request = replace(_request(commits), tip_table_id="table-2")
    assert plan_slices(request).slices == ()
    plan = plan_slices(replace(request, covered_table_id="table-1"))
    assert ranges(plan) == [(5, 5)]
    assert plan.stop is not None
    assert (plan.stop.version, plan.stop.kind) == (6, BreakKind.TABLE_REPLACED)
    before = plan_slices(replace(request, covered_table_id="table-1", tip=5, commits=commits[:1]))
    assert before == Plan(plan.slices)


@pytest.mark.parametrize("tip_table_id", ["table-1", "table-2"])
def test_a_source_that_went_back_is_another_table(tip_table_id: str) -> None:
    plan = plan_slices(replace(_request([]), tip=3, tip_table_id=tip_table_id))
    assert plan.slices == ()
    assert plan.stop is not None
    assert (plan.stop.version, plan.stop.kind) == (3, BreakKind.TABLE_REPLACED)


def test_a_mirrored_subset_of_columns_and_row_tracking_reach_the_rules() -> None:
    dropped = [change(5, metadata=feed_metadata(_V0))]
    request = replace(_request(dropped), schema_string=_V1)
    one_column = replace(_NEEDS, columns=("id",))
    assert plan_slices(request).stop is not None
    assert plan_slices(replace(request, needs=one_column)).stop is None
    assert plan_slices(replace(request, needs=replace(one_column, row_tracking=True))).stop is not None


@pytest.mark.parametrize("versions", [(5, 7), (6, 7), (5, 5), (6, 5)])
def test_commits_with_a_hole_are_refused(versions: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="are not those of 5 to"):
        plan_slices(replace(_request([change(version) for version in versions]), tip=versions[-1]))


@pytest.mark.parametrize(
    ("rows", "stored", "likely", "parts"), [(51, 60, 51, 3), (None, 60, 60, 3), (None, None, 100, 4), (0, 0, 0, 1)]
)
def test_a_snapshot_slice_has_the_whole_table(rows: int | None, stored: int | None, likely: int, parts: int) -> None:
    state = SourceState("uri", 9, 123, feed_metadata(_V1), Protocol(1, 2), 4, 10_000, rows, stored)
    planned = snapshot_slice(state, 3, 25)
    assert (planned.epoch, planned.first, planned.last, planned.is_snapshot) == (3, 0, 9, True)
    assert (planned.rows, planned.rows_exact, planned.bytes, planned.parts) == (likely, rows is not None, 10_000, parts)
    assert planned.assignments == (PartAssignment(9, 0, parts),)
    assert (planned.first_commit_ms, planned.last_commit_ms, planned.table_id) == (123, 123, "table-1")


def test_a_wide_table_has_more_parts_in_snapshots_and_slices() -> None:
    wide = schema_string(*(column(f"c{number}") for number in range(250)))
    state = SourceState("uri", 9, 123, feed_metadata(wide), Protocol(1, 2), 4, 10_000, 250_000, 250_000)
    loaded = snapshot_slice(state, 3, 1_000_000)
    assert (loaded.parts, loaded.target_rows) == (3, 100_000)
    commits = [change(5, rows=250_000)]
    (planned,) = plan_slices(replace(_request(commits), schema_string=wide, target_rows=1_000_000)).slices
    assert (planned.parts, planned.target_rows) == (3, 100_000)


def _appends(*commits: Commit) -> Plan:
    """The plan of an append-only mirror."""
    return plan_slices(plan_request(commits, _V1, Needs("table-1", (), append_only=True)))


def _rewrite(version: int, operation: str = "DELETE") -> Commit:
    return replace(change(version), rewrites=True, operation=operation)


@pytest.mark.parametrize(
    ("rows", "parts", "assignments"), [((60, 0, 60, 70), 2, (PartAssignment(4, 0, 2),)), ((0, 0, 0, 0), 0, ())]
)
def test_appends_of_a_slice_share_as_few_parts_as_hold_their_rows(
    rows: tuple[int, ...], parts: int, assignments: tuple[PartAssignment, ...]
) -> None:
    (planned,) = _appends(*(change(version, rows=count) for version, count in enumerate(rows, 1))).slices
    assert (planned.rows, planned.parts, planned.assignments) == (sum(rows), parts, assignments)


def test_appends_stop_before_a_commit_that_changes_rows() -> None:
    commits = change(1), _rewrite(2), change(3)
    plan = _appends(*commits)
    assert ranges(plan) == [(1, 1)]
    assert plan.stop is not None
    assert (plan.stop.version, plan.stop.kind) == (2, BreakKind.ROWS_CHANGED)
    assert "version 2 (DELETE)" in plan.stop.message
    assert plan_slices(plan_request(commits, _V1, _NEEDS)).stop is None


def test_an_overwrite_with_another_schema_changes_rows_and_another_table_is_a_break() -> None:
    fewer = replace(_rewrite(1, "WRITE"), metadata=feed_metadata(_V0))
    other = replace(_rewrite(1, "CREATE OR REPLACE TABLE"), metadata=feed_metadata(_V1, "table-2"))
    stops = [_appends(commit).stop for commit in (fewer, other)]
    assert [stop and stop.kind for stop in stops] == [BreakKind.ROWS_CHANGED, BreakKind.TABLE_REPLACED]


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
    write_commit(tmp_path, 0, [PROTOCOL, metadata_action(_V1)])
    write_commit(tmp_path, 1, actions)
    (commit,) = DeltaLog(str(tmp_path)).commits(1, 1)
    assert commit.rewrites is rewrites


_LIMITS = st.builds(Limits, st.integers(1, 6), st.integers(1, 80), st.integers(1, 300))
_SCHEMAS = st.sampled_from([_V0, _V1, _V2, _OTHER])


@st.composite
def _requests(draw: st.DrawFn) -> PlanRequest:
    covered = draw(st.integers(0, 5))
    commits = []
    for version in range(covered + 1, covered + 1 + draw(st.integers(0, 25))):
        metadata = feed_metadata(draw(_SCHEMAS)) if draw(st.integers(0, 5)) == 0 else None
        commits.append(
            change(version, rows=draw(st.integers(0, 60)), size=draw(st.integers(0, 200)), metadata=metadata)
        )
    boundaries = draw(st.frozensets(st.integers(0, 30), max_size=4))
    return replace(
        _request(commits, covered, draw(_LIMITS), boundaries),
        schema_string=draw(_SCHEMAS),
        target_rows=draw(st.integers(1, 50)),
    )


@given(_requests())
def test_slices_are_contiguous_and_reach_the_break_or_the_tip(request: PlanRequest) -> None:
    plan = plan_slices(request)
    last = plan.stop.version - 1 if plan.stop else request.tip
    covered = [version for planned in plan.slices for version in range(planned.first, planned.last + 1)]
    assert covered == list(range(request.covered + 1, last + 1))
    assert all(planned.first <= planned.last for planned in plan.slices)


@given(_requests())
def test_a_limit_is_only_exceeded_by_a_single_commit(request: PlanRequest) -> None:
    limits = request.limits
    for planned in plan_slices(request).slices:
        commits = planned.last - planned.first + 1
        assert commits <= limits.max_commits
        assert commits == 1 or (planned.rows <= limits.max_rows and planned.bytes <= limits.max_bytes)


@given(_requests())
def test_slices_are_as_long_as_they_may_be(request: PlanRequest) -> None:
    """Two slices that follow each other could not have been one."""
    plan = plan_slices(request)
    by_version = {commit.version: commit for commit in request.commits}
    for one, two in zip(plan.slices, plan.slices[1:], strict=False):
        first = by_version[two.first]
        limits = request.limits
        assert (
            one.last in request.boundaries
            or one.schema != two.schema
            or one.last - one.first + 2 > limits.max_commits
            or one.rows + first.rows > limits.max_rows
            or one.bytes + first.bytes > limits.max_bytes
        )


@given(_requests())
def test_parts_hold_commits_in_order_and_are_bounded(request: PlanRequest) -> None:
    rows = {commit.version: commit.rows for commit in request.commits}
    for planned in plan_slices(request).slices:
        changing = [version for version in range(planned.first, planned.last + 1) if rows[version]]
        assert [assignment.version for assignment in planned.assignments] == changing
        end, filled = 0, 0
        for assignment in planned.assignments:
            shares = assignment.first_part == end - 1 and assignment.parts == 1
            assert shares or assignment.first_part == end
            filled = (filled if shares else 0) + rows[assignment.version]
            assert filled <= assignment.parts * request.target_rows
            assert assignment.parts == 1 or rows[assignment.version] > (assignment.parts - 1) * request.target_rows
            end = assignment.first_part + assignment.parts
        assert planned.parts == end


@given(_requests())
def test_one_schema_per_slice(request: PlanRequest) -> None:
    for planned in plan_slices(request).slices:
        inside = [c.metadata for c in request.commits if planned.first < c.version <= planned.last and c.metadata]
        assert {parse_schema(metadata.schema_string) for metadata in inside} <= {planned.schema}


@given(_requests(), st.data())
def test_planning_on_from_any_slice_gives_the_rest_of_the_plan(request: PlanRequest, data: st.DataObject) -> None:
    plan = plan_slices(request)
    if plan.slices:
        done = data.draw(st.sampled_from(plan.slices))
        rest = plan_slices(
            replace(
                request,
                covered=done.last,
                schema_string=done.schema_string,
                commits=tuple(commit for commit in request.commits if commit.version > done.last),
            )
        )
        assert rest == Plan(tuple(planned for planned in plan.slices if planned.first > done.last), plan.stop)


@given(_requests(), st.integers(0, 25))
def test_a_source_that_grows_keeps_registered_keys(request: PlanRequest, grown: int) -> None:
    tip = min(request.covered + grown, request.tip)
    early = replace(request, tip=tip, commits=tuple(c for c in request.commits if c.version <= tip))
    registered = plan_slices(early)
    later = plan_slices(
        replace(request, boundaries=request.boundaries | {planned.last for planned in registered.slices})
    )
    assert later.slices[: len(registered.slices)] == registered.slices
