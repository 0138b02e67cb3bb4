"""Which keys' rows may stand in another order, as far as their markers tell: beside all orders, tried one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.audit.keyed_rows import aliases, keyed_rows
from mirror_assets.audit.repeats import RepeatedKeys
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.markers import Marker
from mirror_assets_tests.audit.rows import Row, staged_rows

_INSERT, _UPDATE, _DELETE = int(Marker.INSERT), int(Marker.UPDATE), int(Marker.DELETE)
_MOST = 1_000


def _makes_sense(markers: Sequence[int]) -> bool:
    return all((before == _DELETE) == (after == _INSERT) for before, after in pairwise(markers))


def _epoch(stays: Sequence[bool], *, was_there: bool) -> list[int]:
    """Markers of a key that is there, or not, after each of its changes."""
    there = was_there
    markers = []
    for stay in stays:
        markers.append((_UPDATE if stay else _DELETE) if there else _INSERT)
        there = stay or not there
    return markers


def _repeated(staged: StagedSlice) -> RepeatedKeys:
    (every,) = keyed_rows(staged)
    return RepeatedKeys.among(every, aliases(staged.record))


_LIVES = st.lists(st.tuples(st.lists(st.booleans(), min_size=1, max_size=4), st.booleans()), min_size=1, max_size=8)


@given(_LIVES, st.randoms(use_true_random=False), st.integers(1, 3))
def test_keys_are_undecided_whose_rows_have_another_order_that_makes_sense(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[list[bool], bool]], mixed: Random, parts: int
) -> None:
    markers = {key: _epoch(stays, was_there=was_there) for key, (stays, was_there) in enumerate(lives)}
    turns = [key for key, found in markers.items() for _ in found]
    mixed.shuffle(turns)
    left = {key: iter(found) for key, found in markers.items()}
    rows: list[Row] = [(key, "a", next(left[key])) for key in turns]
    size = -(-len(rows) // parts)
    cut = [rows[start : start + size] for start in range(0, len(rows), size)]
    repeated = _repeated(staged_rows(tmp_path_factory.mktemp("slice"), cut))
    open_ = {
        key for key, found in markers.items() if len(found) > 1 and sum(map(_makes_sense, permutations(found))) > 1
    }
    twice = {key for key in open_ if (_UPDATE, _UPDATE) in pairwise(markers[key])}
    if len(repeated):
        undecided = repeated.undecided()
        assert set(undecided.rows["key0"].to_pylist()) == open_
        for key in open_:
            of_key = [row["marker"] for row in undecided.rows.to_pylist() if row["key0"] == key]
            assert of_key == markers[key]
        assert undecided.are_updated_twice() == bool(twice)


def test_of_many_keys_some_are_taken_from_everywhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    rows: list[Row] = [(key, "a", _UPDATE) for _ in range(2) for key in range(100)]
    staged = staged_rows(tmp_path_factory.mktemp("slice"), [rows])
    some = _repeated(staged).undecided().sample(10, staged.bounds, 1)
    assert sorted(some.rows["key0"].to_pylist()) == sorted([*range(0, 100, 10)] * 2)


def test_of_keys_that_two_parts_share_some_are_taken(tmp_path_factory: pytest.TempPathFactory) -> None:
    first: list[Row] = [(key, "a", _UPDATE) for key in range(100)]
    second: list[Row] = [(key, "a", _UPDATE) for key in range(100) if key != 7]
    third: list[Row] = [(7, "a", _UPDATE)]
    staged = staged_rows(tmp_path_factory.mktemp("slice"), [first, second, third])
    some = _repeated(staged).undecided().sample(1, staged.bounds, 2)
    assert {row["key0"] for row in some.rows.to_pylist()} == {0, 7, 51}
