"""Every schedule of a few publishers, the service and a bad network, over a store in memory.

A publisher is a pure function of the answers it got, so a world is the store plus what each publisher was answered. The
search goes breadth first and visits each world once; the worlds it counts are facts, not samples.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from unittest.mock import patch

from mirror_assets.errors import ErrorRow, MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.errors import SLICE_MISSING
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import Steps
from mirror_assets.zones.errors import REQUEST_UNKNOWN
from mirror_assets_tests.landing.faults import WRITES, shown
from mirror_assets_tests.landing.minds import Ended, Minds, Raised, Start
from mirror_assets_tests.landing.service import Remove, Service, keeps_the_last
from mirror_assets_tests.landing.staging import TABLE
from mirror_assets_tests.landing.zones import Action, History, Zones
from mirror_assets_tests.zones.memory import MemoryStore

_TRY_AGAIN = (RetryError, UnknownOutcome)
# A publisher that is started when all have ended; each start counts, because an attempt id is used once.
_AFTERWARDS = 9
_UNKNOWN = Raised("no answer", REQUEST_UNKNOWN(path="the file", why="no answer"))


class Violation(AssertionError):
    """The protocol broke; the message is the schedule that leads there."""


@dataclass(frozen=True)
class Case:
    """Where the zone stands, who publishes, what must land, and what may go wrong on the way.

    In the end one of the `histories` has landed, whole; one of `ended` may have begun before its epoch ended. Beside
    "try again", publishers may end with `refusals`; then the next run need not complete, but still may do no wrong. The
    next run finds no manifest if it is `manifest_lost`. `next_runs` may say who runs next, and fail for what is left.
    `roll_ups` are other sizes of the history's roll-ups.
    """

    zone: MemoryStore
    publishers: tuple[Start, ...]
    histories: tuple[History, ...]
    ended: tuple[History, ...] = ()
    flying: tuple[Action, ...] = ()
    losses: int = 0
    crashes: int = 0
    service: Service = keeps_the_last
    refusals: tuple[ErrorRow[MirrorError], ...] = ()
    manifest_lost: bool = False
    next_runs: Callable[[MemoryStore], None] | None = None
    roll_ups: Mapping[str, int] = field(default_factory=dict)


@contextmanager
def roll_ups_of(sizes: Mapping[str, int]) -> Iterator[None]:
    """The history's roll-ups have other sizes for a while."""
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(patch(f"mirror_assets.landing.generations.{name}", size))
        yield


@functools.cache
def worlds_of(case: Callable[[MemoryStore], Case]) -> int:
    """How many worlds the case has, in which no rule breaks; searched once in a process."""
    return Search(case(MemoryStore())).run()


class World(NamedTuple):
    """The zone's state, what each publisher was told so far, requests that may still arrive, and faults left."""

    zone: int
    minds: tuple[int, ...]
    flying: tuple[int, ...]
    losses: int
    crashes: int


class Step(NamedTuple):
    """A publisher's next request, and what an undisturbed answer leads to."""

    action: Action
    answer: Hashable
    zone: int
    mind: int


class Move(NamedTuple):
    """What leads from one world to the next."""

    who: str
    action: Action
    how: Hashable = None

    def __str__(self) -> str:
        how = f"-> {self.how.text}" if isinstance(self.how, Raised) else self.how if isinstance(self.how, str) else ""
        return f"{self.who}: {shown(self.action)} {how}".rstrip()


class Search:
    """The worlds that a case can reach."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._minds = Minds((*case.publishers, _recovery))
        self._zones = Zones(case.histories + case.ended)
        self._steps: dict[tuple[int, int], Step | None] = {}
        self._services: dict[int, tuple[tuple[Move, int], ...]] = {}
        self._actions: list[Action] = []
        self._settled: set[tuple[int, tuple[int, ...]]] = set()
        self._afterwards: list[Move] = []

    def run(self) -> int:
        """How many worlds there are. Raises Violation at the first that breaks a rule."""
        with roll_ups_of(self._case.roll_ups):
            return self._run()

    def _run(self) -> int:
        first = self._first()
        seen: dict[World, World | None] = {first: None}
        queue = deque([first])
        while queue:
            world = queue.popleft()
            try:
                self._afterwards.clear()
                self._settle(world.zone, world.flying)
                self._afterwards.clear()
                for _, after in self._moves(world):
                    if after not in seen:
                        seen[after] = world
                        queue.append(after)
            except AssertionError as broken:
                schedule = (*self._trace(seen, world), *map(str, self._afterwards))
                raise Violation("\n".join((*schedule, str(broken)))) from None
        return len(seen)

    def _first(self) -> World:
        minds = tuple(self._minds.born(publisher, 0) for publisher in range(len(self._case.publishers)))
        flying = tuple(self._sent(action) for action in self._case.flying)
        return World(self._zones.first(self._case.zone), minds, flying, self._case.losses, self._case.crashes)

    def _moves(self, world: World) -> Iterator[tuple[Move, World]]:
        zone, minds, flying, losses, crashes = world
        for move, after in self._service(zone):
            yield move, World(after, minds, flying, losses, crashes)
        for late in flying:
            action, rest = self._actions[late], tuple(other for other in flying if other != late)
            after, _ = self._zones.after(zone, action)
            yield Move("late", action), World(after, minds, rest, losses, crashes)
        for publisher, mind in enumerate(minds):
            step = self._step(zone, mind)
            if step is not None:
                yield from self._ways(world, publisher, step)

    def _ways(self, world: World, publisher: int, step: Step) -> Iterator[tuple[Move, World]]:
        """How the publisher's next request may go."""
        zone, minds, flying, losses, crashes = world
        who, action, mind = "ABC"[publisher], step.action, minds[publisher]

        def minds_with(new: int) -> tuple[int, ...]:
            return (*minds[:publisher], new, *minds[publisher + 1 :])

        yield Move(who, action, step.answer), World(step.zone, minds_with(step.mind), flying, losses, crashes)
        if losses and isinstance(action, WRITES):
            unknown = minds_with(self._minds.after(mind, _UNKNOWN))
            delayed = tuple(sorted((*flying, self._sent(action))))
            yield Move(who, action, "done, but no answer"), World(step.zone, unknown, flying, losses - 1, crashes)
            yield Move(who, action, "delayed, no answer"), World(zone, unknown, delayed, losses - 1, crashes)
            again = World(step.zone, minds_with(step.mind), delayed, losses - 1, crashes)
            yield Move(who, action, "done, and repeated late"), again
        if crashes:
            reborn = minds_with(self._minds.reborn(mind))
            yield Move(who, action, "crashes before it"), World(zone, reborn, flying, losses, crashes - 1)

    def _step(self, zone: int, mind: int) -> Step | None:
        """What the publisher does next, or None when it has ended. Fails if it ended with a refusal that it may not."""
        if (zone, mind) in self._steps:
            return self._steps[zone, mind]
        wanted, step = self._minds.wants(mind), None
        if isinstance(wanted, Ended):
            ended, rows = wanted.error, (SLICE_MISSING, *self._case.refusals)
            assert ended is None or isinstance(ended, _TRY_AGAIN) or ended.row in rows, f"ended with {ended!r}"
        else:
            after, answer = self._zones.after(zone, wanted)
            step = Step(wanted, answer, after, self._minds.after(mind, answer))
        self._steps[zone, mind] = step
        return step

    def _service(self, zone: int) -> tuple[tuple[Move, int], ...]:
        if zone not in self._services:
            actions = self._case.service(self._zones[zone].visible)
            self._services[zone] = tuple(
                (Move("service", action), self._zones.after(zone, action)[0]) for action in actions
            )
        return self._services[zone]

    def _sent(self, action: Action) -> int:
        if action not in self._actions:
            self._actions.append(action)
        return self._actions.index(action)

    def _settle(self, zone: int, flying: tuple[int, ...]) -> None:
        """Fail unless, if everybody died now, the next runs would leave just what is expected, come late what may."""
        if (zone, flying) in self._settled:
            return
        self._settled.add((zone, flying))
        if self._case.next_runs is not None:
            self._case.next_runs(self._zones[zone].store.clone())
            return
        found = self._zones.after(zone, Remove(TABLE.manifest))[0] if self._case.manifest_lost else zone
        end = self._alone(found, len(self._case.publishers))
        for publisher in range(len(self._case.publishers)):
            end = self._alone(end, publisher)
        landed = self._zones[end].landed
        assert self._case.refusals or landed in self._case.histories, f"in the end only {landed} has landed"
        for late in flying:
            after, _ = self._zones.after(end, self._actions[late])
            self._settle(after, tuple(other for other in flying if other != late))

    def _alone(self, zone: int, publisher: int) -> int:
        """The zone after the publisher was started anew and nobody disturbed it."""
        mind = self._minds.born(publisher, _AFTERWARDS)
        while (step := self._step(zone, mind)) is not None:
            self._afterwards.append(Move("afterwards", step.action, step.answer))
            zone, mind = step.zone, step.mind
        return zone

    def _trace(self, seen: dict[World, World | None], world: World) -> list[str]:
        moves: list[str] = []
        while (before := seen[world]) is not None:
            moves.append(next(str(move) for move, after in self._moves(before) if after == world))
            world = before
        return moves[::-1]


def _recovery(_epoch: int) -> Steps[object]:
    return recover(TABLE)
