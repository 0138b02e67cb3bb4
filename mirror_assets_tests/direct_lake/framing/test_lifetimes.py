"""Lifetimes of files: at every version, those that span it are the version's files."""

from __future__ import annotations

from hypothesis import given

from mirror_assets.direct_lake.log_history import FileLifetime, file_lifetimes
from mirror_assets_tests.direct_lake.framing.stories import Story, live_file, stories, vector

_THIRD = 86_400_000 // 3


@given(stories())
def test_lifetimes_span_the_versions_that_have_the_file(story: Story) -> None:
    lives = file_lifetimes(story.history)
    for version, files in enumerate(story.states, story.first):
        there = [life.path for life in lives if _spans(life, version)]
        assert sorted(there) == sorted(files)
    for life in lives:
        assert (life.added is None) == (story.first > 0 and life.path in story.states[0] and _spans(life, story.first))
        assert (life.removed is None) == (life.removed_ms is None)
        assert life.added_ms == (None if life.added is None else life.added * _THIRD)


def _spans(life: FileLifetime, version: int) -> bool:
    return (life.added is None or life.added <= version) and (life.removed is None or version < life.removed)


@given(stories())
def test_changes_are_the_versions_with_another_vector(story: Story) -> None:
    for life in file_lifetimes(story.history):
        last = story.first + len(story.states) if life.removed is None else life.removed
        versions = range(story.first if life.added is None else life.added, last)
        vectors = {version: story.states[version - story.first][life.path].vector for version in versions}
        assert life.changes == tuple(v for v in versions[1:] if vectors[v] != vectors[v - 1])


def test_a_file_that_comes_back_lives_twice() -> None:
    one, hidden = live_file("1"), live_file("1", vector=vector("a"))
    states = [{"1": one}, {"1": hidden}, {}, {"1": one}]
    lives = file_lifetimes(Story(0, states, ["WRITE", "DELETE", "DELETE", "RESTORE"]).history)
    assert lives == (
        FileLifetime("1", 100, 10, 0, 0, 2, 2 * _THIRD, (1,)),
        FileLifetime("1", 100, 10, 3, 3 * _THIRD),
    )


def test_before_a_cleaned_log_nobody_knows_when_a_file_came() -> None:
    (life,) = file_lifetimes(Story(5, [{"1": live_file("1")}], ["WRITE"]).history)
    assert (life.added, life.added_ms, life.removed) == (None, None, None)
