"""Pairs of mishaps: the second while the first is being recovered from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from mirror_assets_tests.worlds.faults.kinds import CHANGING, Kind
from mirror_assets_tests.worlds.faults.trial import Arrival, Mishap
from mirror_assets_tests.worlds.onelake import Record

# One of each group that leaves something open; what is refused for now, or cut, is asked again without a question.
_OPEN = (Kind.BUSY, Kind.FAILED_AFTER, Kind.HELD)
_RETRIES = 3  # requests that a mishap adds to those of an undisturbed run
_SOME = 16

Pair = tuple[Mishap, Mishap]


def every_pair(records: Sequence[Record]) -> Iterator[Pair]:
    """Every second mishap behind every first one: in the same start, or in the one after the process has given up."""
    arrivals = itertools.cycle((Arrival.ENDED, Arrival.OVERTAKEN, Arrival.CONSUMED))
    last = len(records) + _RETRIES
    for first in _firsts(records):
        for at in range(1 if first.lasting else first.at + 1, last + 1):
            for kind in _OPEN:
                arrival = next(arrivals)
                yield Mishap(first.at, first.kind, first.lasting, arrival), Mishap(at, kind)


def some_pairs(records: Sequence[Record]) -> Iterator[Pair]:
    """A few of them, from all over the order."""
    pairs = list(every_pair(records))
    step = len(pairs) // _SOME
    return iter(pairs[step // 2 :: step])


def _firsts(records: Sequence[Record]) -> Iterator[Mishap]:
    for at, record in enumerate(records, 1):
        for kind, lasting in itertools.product(_OPEN, (False, True)):
            if record.operation in CHANGING or kind is Kind.BUSY:
                yield Mishap(at, kind, lasting)
