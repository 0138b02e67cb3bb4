"""What the history keeps next: from where, in which slices, and what is in the way. No Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.errors import ErrorCode, SettingError, StopError
from mirror_assets.features.history.errors import HistoryCode
from mirror_assets.features.history.history_log import HistoryCommit
from mirror_assets.features.history.history_plan import (
    HistoryPlan,
    HistorySlice,
    _switched_on,
    plan_backlog,
    plan_history,
)
from mirror_assets.source.actions import Metadata, Protocol
from mirror_assets.source.commits import Commit, SourceState
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import TimePoint, VersionPoint
from mirror_assets_tests.errors import raises
from mirror_assets_tests.features.history.sources import Place
from mirror_assets_tests.source.handmade import commit_file

OFF = {"delta__enableChangeDataFeed": "false"}
ON = {"delta__enableChangeDataFeed": "true"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def covered(place: Place, version: int) -> HistoryCommit:
    return HistoryCommit(7, DeltaLog(place.source).state().table_id, 0, version, "a")


def ranges(plan: HistoryPlan) -> list[tuple[int, int]]:
    return [(slice_.first, slice_.last) for slice_ in plan.slices]


def test_a_history_begins_with_the_first_commit_of_a_table_that_always_had_a_feed(place: Place) -> None:
    place.create()
    place.update(1)
    (planned,) = plan_history(place.context(), None).slices
    assert (planned.first, planned.last) == (0, 1)
    assert planned.rows >= 5, "rows of change files are estimated"
    assert planned.table_id == str(DeltaTable(place.source).metadata().id)


@given(covered=st.integers(-1, 6), most=st.integers(1, 9))
def test_every_commit_behind_what_is_covered_is_in_one_slice(covered: int, most: int, seven: Place) -> None:
    newest = None if covered < 0 else HistoryCommit(1, DeltaLog(seven.source).state().table_id, 0, covered, "a")
    plan = plan_history(seven.context(max_commits=most), newest)
    versions = [version for one in plan.slices for version in range(one.first, one.last + 1)]
    assert versions == list(range(covered + 1, 7))
    assert all(one.last - one.first < most for one in plan.slices)


@pytest.fixture(scope="module")
def seven(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("seven"))
    place.create()
    for identity in range(6):
        place.append(10 + identity)
    return place


@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_plans_of_a_few_commits_each_have_the_slices_of_one_plan(
    place: Place, most: int, snapshot: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan never cuts a slice off, wherever the commits in memory end, and it ends at the same error."""
    place.create(feed=False)
    place.set(**ON)
    for identity in range(10, 16):
        place.append(identity)
    place.append(20, more=pa.array([1.5]))
    for identity in range(21, 26):
        place.append(identity)
    context = place.context(max_commits=most, snapshot=snapshot)
    (whole,) = plan_backlog(context, None)
    assert (whole.is_whole, len(whole.slices) > 12 // most) == (True, True)
    read = list[int]()
    commits = DeltaLog.commits

    def counting(log: DeltaLog, first: int, last: int) -> tuple[Commit, ...]:
        read.append(last - first + 1)
        return commits(log, first, last)

    monkeypatch.setattr("mirror_assets.features.history.history_plan._COMMITS", 2)
    monkeypatch.setattr(DeltaLog, "commits", counting)
    plans = list(plan_backlog(context, None))
    assert [plan.is_whole for plan in plans] == [*[False] * (len(plans) - 1), True]
    assert len(plans) > 2
    assert [one for plan in plans for one in plan.slices] == list(whole.slices)
    assert max(read) == most + 2
    place.set(**OFF)
    place.append(30)
    plans = list(plan_backlog(context, covered(place, 4)))
    assert [plan.stop is None for plan in plans] == [*[True] * (len(plans) - 1), False]
    assert [one.last for plan in plans for one in plan.slices][-1] == 13


def test_a_slice_has_one_schema(place: Place) -> None:
    place.create()
    place.append(10)
    place.append(11, more=pa.array([1.5]))
    place.append(12)
    plan = plan_history(place.context(), None)
    assert ranges(plan) == [(0, 1), (2, 3)]
    assert ["more" in one.schema_string for one in plan.slices] == [False, True]


def test_a_feed_that_was_switched_on_later_is_kept_from_there(place: Place) -> None:
    place.create(feed=False)
    place.append(10)
    place.set(**ON)
    place.append(11)
    assert ranges(plan_history(place.context(snapshot=False), None)) == [(2, 3)]
    begun, rest = plan_history(place.context(), None).slices
    assert ((begun.first, begun.last, begun.rows), (rest.first, rest.last)) == ((2, 2, 4), (3, 3))
    assert begun.snapshot_ms is not None


def test_a_disabled_feed_is_reported_with_the_statement_that_enables_it(place: Place) -> None:
    place.create(feed=False)
    with raises(SettingError, ErrorCode.FEED_DISABLED, match=r"ALTER TABLE delta.*history: false"):
        plan_history(place.context(), None)


def test_a_history_begins_where_files_are_still_there(place: Place) -> None:
    place.create()
    place.append(10)
    place.append(11)
    before = set(Path(place.source).glob("*.parquet"))
    place.delete(10)
    place.append(12)
    DeltaTable(place.source).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert len(set(Path(place.source).glob("*.parquet")) & before) < len(before)
    # The file of version 1 went with the row that was deleted; vacuuming made two commits.
    assert ranges(plan_history(place.context(snapshot=False), None)) == [(2, 6)]
    # A snapshot of version 2 would need it.
    assert ranges(plan_history(place.context(), None)) == [(3, 3), (4, 6)]


def test_commits_that_are_gone_from_the_log_are_named_and_not_skipped(place: Place) -> None:
    place.create()
    for identity in range(6):
        place.append(10 + identity)
    DeltaTable(place.source).create_checkpoint()
    newest = covered(place, 1)
    for version in range(5):
        commit_file(Path(place.source), version).unlink()
    with raises(
        StopError, HistoryCode.HISTORY_GAP, match=r"versions 2 to 5 can't be read.*--table shop.orders --skip-to 6"
    ):
        plan_all(place, newest)
    assert ranges(plan_history(place.context(), newest, skip_to=6)) == [(6, 6)]
    assert ranges(plan_history(place.context(), covered(place, 5))) == [(6, 6)]


def plan_all(place: Place, newest: HistoryCommit | None) -> HistoryPlan:
    """The plan, if nothing is in the way."""
    plan = plan_history(place.context(), newest)
    if plan.stop is not None:
        raise plan.stop
    return plan


def test_what_comes_before_a_time_without_feed_is_kept_and_the_time_is_named(place: Place) -> None:
    place.create()
    place.append(10)
    place.set(**OFF)
    place.append(11)
    place.set(**ON)
    place.append(12)
    plan = plan_history(place.context(), covered(place, 0))
    assert ranges(plan) == [(1, 1)]
    assert isinstance(plan.stop, StopError)
    assert plan.stop.code is HistoryCode.HISTORY_GAP
    assert "versions 2 to 3 can't be read any more (the change data feed was off)" in str(plan.stop)
    assert "--skip-to 4`" in str(plan.stop)
    assert ranges(plan_history(place.context(), covered(place, 1), skip_to=4)) == [(4, 5)]
    assert ranges(plan_history(place.context(), None)) == [(4, 4), (5, 5)]


def test_a_history_starts_at_a_version_or_a_time_even_one_that_is_not_there_yet(place: Place) -> None:
    place.create()
    place.append(10)
    place.append(11)
    log = place.context().source
    time_ms = log.times(log.state()).at(1)
    for start, expected in (
        (VersionPoint(1), [(1, 2)]),
        (TimePoint(time_ms), [(1, 2)]),
        (VersionPoint(3), []),
        (TimePoint(2**42), []),
    ):
        assert ranges(plan_history(place.context(start=start), None)) == expected


def test_while_the_feed_is_off_no_version_to_go_on_at_is_offered(place: Place) -> None:
    place.create()
    place.set(**OFF)
    place.append(11)
    plan = plan_history(place.context(), covered(place, 0))
    assert isinstance(plan.stop, SettingError)
    assert plan.stop.code is ErrorCode.FEED_DISABLED
    assert plan.slices == ()


def test_a_version_to_skip_to_that_leaves_nothing_out_changes_nothing(place: Place) -> None:
    place.create()
    place.append(10)
    place.append(11)
    assert ranges(plan_history(place.context(), covered(place, 1), skip_to=1)) == [(2, 2)]
    assert ranges(plan_history(place.context(), None, skip_to=1)) == [(1, 1), (2, 2)]
    assert plan_history(place.context(), covered(place, 1), skip_to=9).slices == ()


def test_where_the_history_has_lost_what_it_covers_a_person_says_where_to_go_on(place: Place) -> None:
    place.create()
    place.append(10)
    place.append(11)
    unknown = HistoryCommit(9, "", 0, -1, "")
    assert ranges(plan_history(place.context(), unknown, skip_to=2)) == [(2, 2)]
    assert plan_history(place.context(), unknown, skip_to=3).slices == ()


def test_the_history_of_a_recreated_table_starts_with_its_first_commit(place: Place) -> None:
    place.create()
    place.append(10)
    newest = covered(place, 1)
    shutil.rmtree(place.source)
    place.create()
    (planned,) = plan_history(place.context(), newest).slices
    assert (planned.first, planned.last) == (0, 0)
    assert planned.table_id != newest.table_id


def test_another_table_whose_beginning_is_gone_is_not_taken_for_the_same(place: Place) -> None:
    place.create(feed=False)
    place.set(**ON)
    place.append(10)
    other = HistoryCommit(3, "another", 0, 1, "a")
    with raises(
        StopError, HistoryCode.HISTORY_GAP, match=r"after version 1 of the table with the id another.*--skip-to 1"
    ):
        plan_history(place.context(), other)
    assert ranges(plan_history(place.context(), other, skip_to=1)) == [(1, 2)]


def test_a_source_that_was_set_back_stops_the_history(place: Place) -> None:
    place.create()
    with raises(StopError, HistoryCode.HISTORY_UNFIT, match=r"ends at version 0.*at version 3"):
        plan_history(place.context(), covered(place, 3))


def test_a_table_that_is_replaced_in_its_log_goes_on_under_its_new_id(place: Place) -> None:
    place.create()
    newest = covered(place, 0)
    place.append(10)
    place.set(delta__logRetentionDuration="interval 9 days")
    file = commit_file(Path(place.source), 2)
    file.write_text(file.read_text().replace(newest.table_id, "replaced"))
    place.append(11)
    slices: tuple[HistorySlice, ...] = plan_history(place.context(), newest).slices
    assert [(one.first, one.last, one.table_id) for one in slices] == [(1, 1, newest.table_id), (2, 3, "replaced")]


def _metadata(*, on: bool) -> Metadata:
    return Metadata("id", "{}", {"delta.enableChangeDataFeed": str(on).lower()})


def _state(version: int, *, on: bool) -> SourceState:
    return SourceState("/orders", version, 0, _metadata(on=on), Protocol(1, 4), 0, 0, None, None)


@given(first=st.integers(0, 5), on=st.booleans(), switches=st.lists(st.sampled_from([None, True, False]), max_size=12))
def test_it_is_the_longest_stretch_up_to_the_tip_in_which_the_feed_was_on(
    first: int, on: bool, switches: list[bool | None]
) -> None:
    known = _state(first, on=on)
    commits, states = list[Commit](), [on]
    for version, switch in enumerate(switches, start=first + 1):
        metadata = None if switch is None else _metadata(on=switch)
        commits.append(Commit(version, 0, "WRITE", changes_data=True, metadata=metadata))
        states.append(states[-1] if switch is None else switch)
    begin, tip = _switched_on(known, commits), first + len(switches)
    assert first <= begin <= tip + 1
    assert all(states[begin - first :])
    assert begin == first or not states[begin - first - 1]
