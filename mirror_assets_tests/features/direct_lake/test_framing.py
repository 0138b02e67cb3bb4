"""What framing keeps and loads: by example, and on random histories against whole versions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.features.direct_lake.framing import (
    FileSum,
    FramingEffect,
    framing_effect,
    framing_series,
    sum_of,
    table_sizes,
)
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot
from mirror_assets_tests.features.direct_lake.stories import Story, live_file, snapshot, stories, vector

_ONE, _TWO, _THREE = live_file("1", 10, 100), live_file("2", 30, 300), live_file("3", 60, 600)


def _between(before: list[LiveFile], after: list[LiveFile]) -> FramingEffect:
    return framing_effect(
        *(snapshot(v, {file.path: file for file in files}) for v, files in enumerate((before, after)))
    )


def test_an_append_loads_new_files() -> None:
    effect = _between([_ONE, _TWO], [_ONE, _TWO, _THREE])
    assert (effect.first, effect.last) == (0, 1)
    assert effect.kept == FileSum(2, 40, bytes=400)
    assert effect.reloaded == FileSum(1, 60, bytes=600)
    assert (effect.changed, effect.dropped) == (FileSum(), FileSum())
    assert effect.reloaded_share == 0.6
    assert effect.bytes_to_load == 600


def test_a_rewrite_drops_the_old_file_and_loads_the_new_one() -> None:
    effect = _between([_ONE, _TWO], [_TWO, _THREE])
    assert (effect.kept.rows, effect.dropped.rows, effect.reloaded.rows) == (30, 10, 60)


def test_a_file_with_another_deletion_vector_is_a_class_of_its_own() -> None:
    hidden = live_file("2", 30, 300, vector("a", 6))
    effect = _between([_ONE, _TWO], [_ONE, hidden])
    assert effect.changed == FileSum(1, 24, hidden=6, bytes=300)
    assert (effect.kept.rows, effect.reloaded.files, effect.bytes_to_load) == (10, 0, 34)
    assert _between([hidden], [live_file("2", 30, 300, vector("a", 6))]).kept.files == 1
    assert _between([hidden], [live_file("2", 30, 300, vector("b", 6))]).changed.files == 1
    assert _between([hidden], [_TWO]).changed == FileSum(1, 30, bytes=300)


def test_rows_without_statistics_are_unknown() -> None:
    unknown = live_file("4", None, 50)
    effect = _between([_ONE], [_ONE, unknown])
    assert (effect.kept.rows, effect.reloaded.rows, effect.reloaded.without_rows) == (10, None, 1)
    assert (effect.total.rows, effect.reloaded_share) == (None, None)
    assert effect.bytes_to_load == 50


def test_an_empty_version_has_no_shares() -> None:
    effect = _between([_ONE], [])
    assert (effect.reloaded_share, effect.dropped.rows, effect.total.rows) == (None, 10, 0)


def _all(of: Snapshot) -> FileSum:
    return sum(map(sum_of, of.files), FileSum())


@given(stories(), st.data())
def test_every_file_is_counted_once(story: Story, data: st.DataObject) -> None:
    versions = st.integers(story.first, story.first + len(story.states) - 1)
    first, last = story.snapshot(data.draw(versions)), story.snapshot(data.draw(versions))
    effect, back = framing_effect(first, last), framing_effect(last, first)
    assert effect.kept + effect.changed + effect.reloaded == effect.total == _all(last)
    assert effect.kept.files + effect.changed.files + effect.dropped.files == len(first.files)
    assert (back.kept, back.dropped, back.reloaded) == (effect.kept, effect.reloaded, effect.dropped)
    assert back.changed.files == effect.changed.files
    before, after = ({file.path: file.vector for file in version.files} for version in (first, last))
    assert effect.kept.files == len(before.items() & after.items())
    assert effect.reloaded.files == len(after.keys() - before.keys())
    assert framing_effect(last, last).bytes_to_load == 0


@given(stories())
def test_each_day_is_compared_with_the_one_before(story: Story) -> None:
    versions = story.history.daily_versions()
    points = framing_series(story.log, story.history)
    assert [point.effect for point in points] == [
        framing_effect(story.snapshot(first), story.snapshot(last)) for first, last in pairwise(versions)
    ]
    assert [point.timestamp_ms for point in points] == [story.snapshot(last).timestamp_ms for last in versions[1:]]


@given(stories())
def test_sizes_are_those_of_whole_versions(story: Story) -> None:
    versions = range(story.first, story.first + len(story.states))
    assert list(table_sizes(story.history)) == [_all(story.snapshot(version)) for version in versions]


@given(stories())
def test_marks_are_the_maintenance_in_between(story: Story) -> None:
    history = story.history
    marks = [name for point in framing_series(story.log, history) for name in point.maintenance]
    named = {"OPTIMIZE": "OPTIMIZE", "RESTORE": "RESTORE", "VACUUM END": "VACUUM"}
    assert marks == [
        named[operation]
        for version, operation in enumerate(story.operations, story.first)
        if operation in named and version > story.first
    ]


def test_days_end_with_their_last_commit() -> None:
    """Three commits a day, the first at midnight."""
    states = [{str(number): live_file(str(number)) for number in range(version + 1)} for version in range(8)]
    story = Story(0, states, ["WRITE"] * 8)
    history = story.history
    assert history.daily_versions() == (0, 2, 5, 7)
    daily = framing_series(story.log, history)
    assert [(point.effect.kept.files, point.effect.reloaded.files) for point in daily] == [(1, 2), (3, 3), (6, 2)]
