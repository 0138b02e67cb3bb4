"""The effect over time: the replay gives what comparing whole versions gives."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.direct_lake.framing import framing_effect, framing_series
from mirror_assets.direct_lake.log_history import Maintenance
from mirror_assets_tests.direct_lake.framing.stories import Story, live_file, stories


@given(stories(), st.data())
def test_a_replay_gives_what_whole_versions_give(story: Story, data: st.DataObject) -> None:
    history = story.history
    every = history.every_version()
    chosen = sorted(data.draw(st.sets(st.sampled_from(every), min_size=1)))
    for versions in (every, chosen, history.daily_versions()):
        points = framing_series(history, versions)
        pairs = list(pairwise(versions))
        assert [point.effect for point in points] == [
            framing_effect(story.snapshot(first), story.snapshot(last)) for first, last in pairs
        ]
        assert [point.timestamp_ms for point in points] == [story.snapshot(last).timestamp_ms for _, last in pairs]


@given(stories())
def test_marks_are_the_maintenance_in_between(story: Story) -> None:
    history = story.history
    marks = [mark for point in framing_series(history, history.daily_versions()) for mark in point.marks]
    named = {"OPTIMIZE": Maintenance.OPTIMIZE, "RESTORE": Maintenance.RESTORE, "VACUUM END": Maintenance.VACUUM}
    assert [(mark.version, mark.operation) for mark in marks] == [
        (version, named[operation])
        for version, operation in enumerate(story.operations, story.first)
        if operation in named and version > story.first
    ]


def test_days_end_with_their_last_commit() -> None:
    """Three commits a day, the first at midnight."""
    states = [{str(number): live_file(str(number)) for number in range(version + 1)} for version in range(8)]
    history = Story(0, states, ["WRITE"] * 8).history
    assert history.daily_versions() == (0, 2, 5, 7)
    daily = framing_series(history, history.daily_versions())
    assert [(point.effect.kept.files, point.effect.reloaded.files) for point in daily] == [(1, 2), (3, 3), (6, 2)]


def test_a_file_that_is_brought_back_counts_as_never_gone() -> None:
    states = [{"1": live_file("1")}, {}, {"1": live_file("1")}]
    history = Story(0, states, ["WRITE", "DELETE", "RESTORE"]).history
    (point,) = framing_series(history, (0, 2))
    assert (point.effect.kept.files, point.effect.reloaded.files, point.effect.dropped.files) == (1, 0, 0)
