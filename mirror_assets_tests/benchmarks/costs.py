"""Costs of given seconds."""

from __future__ import annotations

from benchmarks.meter import Cost
from benchmarks.result import Case


def costs(*seconds: float) -> tuple[Cost, ...]:
    """One cost for each number of seconds."""
    return tuple(Cost(one, 2 * one, 0, 0, 1 << 20, 1 << 20) for one in seconds)


def case_of(**ways: tuple[float, ...]) -> Case:
    """A case of these ways; the first is the baseline."""
    return Case("a slice", {name: costs(*seconds) for name, seconds in ways.items()}, next(iter(ways)))
