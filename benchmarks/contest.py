"""Runs what is compared in turns, so that a machine's moods fall on all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

Seconds = Mapping[str, list[float]]


def interleaved(contestants: Mapping[str, Callable[[int], None]], rounds: int) -> Seconds:
    """Seconds of each contestant in each round; a round before that warms up is not counted.

    Each is called with the number of the round and begins the round in turn, so that none always follows the same.
    """
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = time.perf_counter()
            contestants[name](turn)
            if turn:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def report(seconds: Seconds, baseline: str) -> str:
    """A line each: median, range, and how many times the baseline's median."""
    base = median(seconds[baseline])
    width = max(map(len, seconds))
    return "\n".join(
        f"{name:{width}}  {median(taken):6.2f} s  ({min(taken):.2f} to {max(taken):.2f})"
        f"  {median(taken) / base:5.2f} x the dump"
        for name, taken in seconds.items()
    )
