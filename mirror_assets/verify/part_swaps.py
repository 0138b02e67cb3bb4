"""Which parts of a slice could stand in each other's place without any compared key telling.

A key whose rows lie in several parts tells their order, if its changes differ. Not every key can be compared with the
feed, but every two parts whose order matters can be: by one key that would look otherwise if they were exchanged.
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
"""The marker of a row and a hash of its values, or 0 where they are not compared."""


@dataclass(frozen=True)
class Crossings:
    """For each part the nearest ones that share a key with it: `after` it, and `before` it.

    The number of parts stands for none after, -1 for none before.
    """

    after: Numbers
    before: Numbers

    @classmethod
    def none(cls, parts: int) -> Crossings:
        """Of parts that share no key."""
        return cls(np.full(parts, parts, np.int64), np.full(parts, -1, np.int64))

    @classmethod
    def between(cls, parts: int, earlier: Numbers, later: Numbers) -> Crossings:
        """Of parts that share keys in these pairs."""
        found = cls.none(parts)
        np.minimum.at(found.after, earlier, later)
        np.maximum.at(found.before, later, earlier)
        return found

    def __add__(self, other: Crossings) -> Crossings:
        """Of the keys of both."""
        return Crossings(np.minimum(self.after, other.after), np.maximum(self.before, other.before))

    def matter(self) -> Flags:
        """For each two parts, the earlier first, whether some key's rows would change places if they were exchanged."""
        part = np.arange(len(self.after))
        return np.triu((self.after[:, None] <= part) | (self.before >= part[:, None]), 1)


def hidden_swaps(crossings: Crossings, keys: Numbers, parts: Numbers, changes: Sequence[Change]) -> Flags:
    """For each two parts, the earlier first, whether exchanging them matters and would change no sequence of changes.

    The rows come by key and in order: the number of their key, of their part, and their change.
    """
    hidden = crossings.matter()
    ends = np.flatnonzero(np.diff(keys, append=-1)) + 1
    for start, end in pairwise([0, *ends.tolist()]):
        of_key = parts[start:end]
        if hidden[of_key].any() or hidden[:, of_key].any():
            _show(hidden, of_key, changes[start:end])
    return hidden


def _show(hidden: Flags, parts: Numbers, changes: Sequence[Change]) -> None:
    """Strike out the exchanges that would change this key's sequence of changes."""
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
