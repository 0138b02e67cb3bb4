"""Sizes counted in fixed bins, so that reports of different days and tables can be laid side by side."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

MB, GB = 10**6, 10**9
# Rows per row group: 1 to 16 million is what Microsoft advises, larger does no harm (reference `direct-lake` §4).
ROW_GROUP_BINS = (0, 10_000, 100_000, 10**6, 8 * 10**6, 16 * 10**6)
# Bytes per file: below 25 MB a table is fragmented, 400 MB to 1 GB is best, above 2 GB too large (§4).
FILE_BINS = (0, MB, 8 * MB, 25 * MB, 128 * MB, 400 * MB, GB, 2 * GB)


@dataclass(frozen=True)
class Bin:
    """Sizes from `least` to below `below` (None: no end): how many there are, and what they add up to."""

    least: int
    below: int | None
    count: int
    total: int


@dataclass(frozen=True)
class Histogram:
    """All bins, also the empty ones, the smallest first."""

    bins: tuple[Bin, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], bounds: Sequence[int]) -> Histogram:
        """The sizes in bins that begin at the bounds, the first of which is 0."""
        counts, totals = [0] * len(bounds), [0] * len(bounds)
        for size in sizes:
            index = bisect_right(bounds, size) - 1
            counts[index] += 1
            totals[index] += size
        ends = [*(end for _, end in pairwise(bounds)), None]
        return cls(tuple(Bin(*row) for row in zip(bounds, ends, counts, totals, strict=True)))

    @property
    def count(self) -> int:
        """How many sizes there are."""
        return sum(one.count for one in self.bins)

    @property
    def total(self) -> int:
        """What they add up to."""
        return sum(one.total for one in self.bins)

    def below(self, bound: int) -> Bin:
        """What is smaller than one of the bounds, as one bin."""
        smaller = [one for one in self.bins if one.least < bound]
        return Bin(0, bound, sum(one.count for one in smaller), sum(one.total for one in smaller))


@dataclass(frozen=True)
class Spread:
    """The smallest, the middle and the largest of some sizes."""

    least: int
    median: float
    most: int

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Spread | None:
        """That of the sizes; None when there are none."""
        return cls(min(sizes), median(sizes), max(sizes)) if sizes else None
