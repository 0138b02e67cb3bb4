"""Find the pairs of parts that could be exchanged without any compared key showing it.

A key whose changes differ and lie in several parts shows the order of these parts. Comparing every key with the feed
would be slow. Comparing one key for each two parts whose order matters is enough, if exchanging them would change it.
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
    """For each part, the nearest part `after` it and the nearest `before` it in which one of its keys goes on.

    The number of parts stands for none after, -1 for none before.
    """

    after: Numbers
    before: Numbers

    @classmethod
    def none(cls, parts: int) -> Crossings:
        """Return the crossings of parts that share no key."""
        return cls(np.full(parts, parts, np.int64), np.full(parts, -1, np.int64))

    @classmethod
    def between(cls, parts: int, earlier: Numbers, later: Numbers) -> Crossings:
        """Return the crossings of parts that share keys in these pairs."""
        found = cls.none(parts)
        np.minimum.at(found.after, earlier, later)
        np.maximum.at(found.before, later, earlier)
        return found

    def __add__(self, other: Crossings) -> Crossings:
        """Return the crossings of both sets of keys."""
        return Crossings(np.minimum(self.after, other.after), np.maximum(self.before, other.before))

    def matter(self) -> Flags:
        """For each two parts, earlier first: whether exchanging them would reorder rows of some key."""
        part = np.arange(len(self.after))
        return np.triu((self.after[:, None] <= part) | (self.before >= part[:, None]), 1)


def hidden_swaps(crossings: Crossings, keys: Numbers, parts: Numbers, changes: Sequence[Change]) -> Flags:
    """For each two parts, earlier first: whether exchanging them matters and no compared key would show it.

    The compared rows come by key and in order: the number of their key, the number of their part, and their change.
    """
    hidden = crossings.matter()
    ends = np.flatnonzero(np.diff(keys, append=-1)) + 1
    for start, end in pairwise([0, *ends.tolist()]):
        of_key = parts[start:end]
        if hidden[of_key].any() or hidden[:, of_key].any():
            _show(hidden, of_key, changes[start:end])
            if not hidden.any():
                break
    return hidden


def _show(hidden: Flags, parts: Numbers, changes: Sequence[Change]) -> None:
    """Clear the exchanges that would change this key's sequence of changes."""
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
