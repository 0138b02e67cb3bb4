"""Runs what is compared in turns, so that a machine's moods fall on all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.meter import Cost, Meter


def interleaved(
    meter: Meter,
    contestants: Mapping[str, Callable[[int], object]],
    rounds: int,
    warming: int = 1,
    prepare: Callable[[int], object] = lambda _: None,
) -> dict[str, tuple[Cost, ...]]:
    """What each contestant cost in each round; rounds before that warm up are not counted.

    Each is called with the number of the round and begins the round in turn, so that none always follows the same.
    `prepare` is called at the begin of a round, and isn't measured.
    """
    names = list(contestants)
    costs: dict[str, list[Cost]] = {name: [] for name in names}
    for turn in range(warming + rounds):
        prepare(turn)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            cost = meter.measured(lambda run=contestants[name], turn=turn: run(turn))  # type: ignore[misc]
            if turn >= warming:
                costs[name].append(cost)
    return {name: tuple(taken) for name, taken in costs.items()}
