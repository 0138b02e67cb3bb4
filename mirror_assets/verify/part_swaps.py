"""Find the pairs of parts that could be swapped without any compared key revealing it.

A key with different changes in several parts reveals the order of these parts. Comparing every key with the change feed
would be slow; one key for each two parts whose order matters is enough, if swapping the parts reorders its changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from mirror_assets.verify.staged import Numbers

Flags = npt.NDArray[np.bool_]
Change = tuple[int, int]
"""The marker of a row and the hash of its values, 0 if values are not compared."""


@dataclass(frozen=True)
class Crossings:
    """For each part, the nearest later part (`after`) and the nearest earlier one (`before`) that has one of its keys.

    Without a later part, `after` is the number of parts; without an earlier one, `before` is -1.
    """

    after: Numbers
    before: Numbers

    @classmethod
    def none(cls, parts: int) -> Crossings:
        """Return the crossings of parts that share no key."""
        return cls(np.full(parts, parts, np.int64), np.full(parts, -1, np.int64))

    @classmethod
    def between(cls, parts: int, earlier: Numbers, later: Numbers) -> Crossings:
        """Return the crossings of pairs of parts that share a key: `earlier[i]` and `later[i]`."""
        found = cls.none(parts)
        np.minimum.at(found.after, earlier, later)
        np.maximum.at(found.before, later, earlier)
        return found

    def __add__(self, other: Crossings) -> Crossings:
        """Return the crossings of both sets of keys."""
        return Crossings(np.minimum(self.after, other.after), np.maximum(self.before, other.before))

    def matter(self) -> Flags:
        """Return a matrix over pairs of parts, earlier first: whether swapping them would reorder rows of some key."""
        part = np.arange(len(self.after))
        return np.triu((self.after[:, None] <= part) | (self.before >= part[:, None]), 1)


def hidden_swaps(crossings: Crossings, keys: Numbers, parts: Numbers, changes: Sequence[Change]) -> Flags:
    """Return a matrix over pairs of parts, earlier first: whether swapping them matters and no compared key reveals it.

    `keys`, `parts` and `changes` have an item for each compared row, sorted by key and place: the number of its key,
    the number of its part, and its change.
    """
    hidden = crossings.matter()
    ends = np.flatnonzero(np.diff(keys, append=-1)) + 1
    for start, end in pairwise([0, *ends.tolist()]):
        of_key = parts[start:end]
        if hidden[of_key].any() or hidden[:, of_key].any():
            _clear_revealed(hidden, of_key, changes[start:end])
            if not hidden.any():
                break
    return hidden


def _clear_revealed(hidden: Flags, parts: Numbers, changes: Sequence[Change]) -> None:
    """Clear the swaps that would alter this key's sequence of changes."""
    rows = zip(parts.tolist(), changes, strict=True)
    runs = [(part, [change for _, change in run]) for part, run in groupby(rows, key=itemgetter(0))]
    bounds = [-1, *(part for part, _ in runs), len(hidden)]
    for i, (part, run) in enumerate(runs):
        passed: list[Change] = []
        for j, (other, its) in enumerate(runs[i + 1 :], i + 1):
            hidden[part, other] &= run + passed + its == its + passed + run
            passed = passed + its
            hidden[part, other + 1 : bounds[j + 2]] &= run + passed == passed + run
        passed = []
        for j in range(i - 1, -1, -1):
            passed = runs[j][1] + passed
            hidden[bounds[j] + 1 : runs[j][0], part] &= passed + run == run + passed
