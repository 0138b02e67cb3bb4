"""Since when the feed can be read without a gap. No Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.features.history.history_plan import _switched_on
from mirror_assets.source.actions import Metadata, Protocol
from mirror_assets.source.commits import Commit
from mirror_assets.source.source_state import SourceState


def _metadata(*, on: bool) -> Metadata:
    return Metadata("id", "{}", {"delta.enableChangeDataFeed": str(on).lower()})


def _state(version: int, *, on: bool) -> SourceState:
    return SourceState("/orders", version, 0, _metadata(on=on), Protocol(1, 4), 0, 0, None, None)


@given(first=st.integers(0, 5), on=st.booleans(), switches=st.lists(st.sampled_from([None, True, False]), max_size=12))
def test_it_is_the_longest_stretch_up_to_the_tip_in_which_the_feed_was_on(
    first: int, on: bool, switches: list[bool | None]
) -> None:
    known = _state(first, on=on)
    commits = [Commit(first, 0, "WRITE", changes_data=True)]
    states = [on]
    for version, switch in enumerate(switches, start=first + 1):
        metadata = None if switch is None else _metadata(on=switch)
        commits.append(Commit(version, 0, "WRITE", changes_data=True, metadata=metadata))
        states.append(states[-1] if switch is None else switch)
    begin, tip = _switched_on(known, tuple(commits)), first + len(switches)
    assert first <= begin <= tip + 1
    assert all(states[begin - first :])
    assert begin == first or not states[begin - first - 1]
