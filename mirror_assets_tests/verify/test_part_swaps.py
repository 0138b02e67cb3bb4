"""Which exchanges of two parts no key would tell: beside all exchanges, tried one by one."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.verify.part_swaps import Change, Crossings, hidden_swaps

_Keys = list[list[tuple[int, Change]]]

_CHANGES = st.sampled_from([(0, 0), (1, 1), (1, 2), (2, 0)])
_PARTS = 6
_KEYS = st.lists(
    st.lists(st.tuples(st.integers(0, _PARTS - 1), _CHANGES), min_size=1, max_size=5).map(
        lambda rows: sorted(rows, key=lambda row: row[0])
    ),
    min_size=1,
    max_size=6,
)


def _crossings(keys: _Keys) -> Crossings:
    pairs = [(a, b) for rows in keys for (a, _), (b, _) in pairwise(rows) if a != b]
    earlier, later = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    return Crossings.between(_PARTS, earlier, later)


def _exchanged(rows: list[tuple[int, Change]], one: int, other: int) -> list[Change]:
    """The key's changes in order, with two parts in each other's place."""
    place = {one: other, other: one}
    return [change for _, change in sorted(rows, key=lambda row: place.get(row[0], row[0]))]


def _is_seen(keys: _Keys, one: int, other: int) -> bool:
    return any(_exchanged(rows, one, other) != [change for _, change in rows] for rows in keys)


@given(_KEYS, st.data())
def test_an_exchange_is_hidden_that_matters_and_changes_no_compared_key(keys: _Keys, data: st.DataObject) -> None:
    crossings = _crossings(keys)
    compared = data.draw(st.lists(st.sampled_from(keys), max_size=len(keys)))
    rows = [(number, part, change) for number, key in enumerate(compared) for part, change in key]
    numbers, parts = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
    hidden = hidden_swaps(crossings, numbers, parts, [change for *_, change in rows])
    matter = crossings.matter()
    for one, other in combinations(range(_PARTS), 2):
        assert matter[one, other] or not _is_seen(keys, one, other)
        assert hidden[one, other] == (matter[one, other] and not _is_seen(compared, one, other))


def test_shares_of_keys_come_to_the_same() -> None:
    keys = [[(0, (1, 1)), (3, (1, 2))], [(1, (1, 1)), (2, (1, 2))]]
    both = _crossings(keys[:1]) + _crossings(keys[1:])
    assert (both.matter() == _crossings(keys).matter()).all()
    assert not Crossings.none(3).matter().any()
