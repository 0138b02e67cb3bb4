"""Every size lies in one bin, wherever the bounds are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.direct_lake.table_layout import FILE_BINS, ROW_GROUP_BINS, Bin, Histogram, Spread


@given(st.lists(st.integers(0, 3 * 10**9)), st.sampled_from([FILE_BINS, ROW_GROUP_BINS]))
def test_every_size_is_in_the_bin_whose_bounds_it_lies_in(sizes: list[int], bounds: tuple[int, ...]) -> None:
    found = Histogram.of(sizes, bounds)
    assert (found.count, found.total) == (len(sizes), sum(sizes))
    for one in found.bins:
        inside = [size for size in sizes if one.least <= size and (one.below is None or size < one.below)]
        assert (one.count, one.total) == (len(inside), sum(inside))
    for bound in bounds[1:]:
        smaller = [size for size in sizes if size < bound]
        assert found.below(bound) == Bin(0, bound, len(smaller), sum(smaller))


def test_the_bins_are_those_that_the_rules_speak_of() -> None:
    assert {25 * 10**6, 400 * 10**6, 10**9, 2 * 10**9} < set(FILE_BINS)
    assert {10**6, 16 * 10**6} < set(ROW_GROUP_BINS)
    assert Histogram.of([], FILE_BINS).bins[-1] == Bin(2 * 10**9, None, 0, 0)


def test_spread() -> None:
    assert Spread.of([3, 1, 10]) == Spread(1, 3, 10)
    assert Spread.of([]) is None
