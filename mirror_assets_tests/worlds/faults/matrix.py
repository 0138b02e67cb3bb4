"""Which mishaps to try: all of them, or a few at every request, so that each kind comes round; alone or in pairs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from mirror_assets_tests.worlds.faults.kinds import CHANGING, Kind, Seen
from mirror_assets_tests.worlds.faults.trial import Arrival, Mishap
from mirror_assets_tests.worlds.onelake import Record

Choice = Callable[[Mishap], bool]


def every(records: Sequence[Record]) -> Iterator[Mishap]:
    """Every kind at every request that it concerns, once and lasting, with every arrival of what is late."""
    for at, record in enumerate(records, 1):
        yield from _at(at, record)


def rotating(records: Sequence[Record], start: int = 0) -> Iterator[Mishap]:
    """At every request, the next mishap of each choice that it is offered; `start` is the first of them."""
    turns = Counter(dict.fromkeys(_CHOICES, start))
    for at, record in enumerate(records, 1):
        mishaps = tuple(_at(at, record))
        for choice in _CHOICES if record.operation in CHANGING else _CHOICES[-1:]:
            offered = [mishap for mishap in mishaps if choice(mishap)]
            yield offered[turns[choice] % len(offered)]
            turns[choice] += 1


def _done_once(mishap: Mishap) -> bool:
    return not mishap.lasting and mishap.kind.group is Seen.DONE


def _late_once(mishap: Mishap) -> bool:
    return not mishap.lasting and mishap.kind.group is Seen.LATE


def _anything_else(mishap: Mishap) -> bool:
    return not _done_once(mishap) and not _late_once(mishap)


# A request that changes something may take effect without a response, or late: both are tried for each of them. The
# rest is asked again, like all that is only read.
_CHOICES: tuple[Choice, ...] = (_done_once, _late_once, _anything_else)


def _at(at: int, record: Record) -> Iterator[Mishap]:
    for kind in Kind:
        if kind.concerns(record):
            yield from (Mishap(at, kind, arrival=arrival) for arrival in _arrivals(kind))
    for kind in Kind:
        if kind.concerns(record) and kind.can_last:
            # What is held for good can't arrive while its sender goes on.
            arrivals = (arrival for arrival in _arrivals(kind) if arrival is not Arrival.MEANWHILE)
            yield from (Mishap(at, kind, lasting=True, arrival=arrival) for arrival in arrivals)


def _arrivals(kind: Kind) -> tuple[Arrival, ...]:
    return tuple(Arrival) if kind is Kind.HELD else (Arrival.ENDED,)


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
    pairs = list(every_pair(records))
    step = len(pairs) // _SOME
    return iter(pairs[step // 2 :: step])


def _firsts(records: Sequence[Record]) -> Iterator[Mishap]:
    for at, record in enumerate(records, 1):
        for kind, lasting in itertools.product(_OPEN, (False, True)):
            if record.operation in CHANGING or kind is Kind.BUSY:
                yield Mishap(at, kind, lasting)
