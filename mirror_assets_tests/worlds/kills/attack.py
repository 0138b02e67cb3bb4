"""One or two publishers on their way, the moment at which each is killed, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from mirror_assets_tests.worlds.kills.place import Place
from mirror_assets_tests.worlds.kills.points import Point, Side, at_request
from mirror_assets_tests.worlds.kills.process import End, Run

_TICK = 0.01


class Broken(AssertionError):
    """A run did what none may do."""


@dataclass(frozen=True)
class Instant:
    """A moment by the clock: so many seconds after the run's start, or after it has begun to stage."""

    seconds: float
    staging: bool = False

    def has_come(self, run: Run, staging: float | None) -> bool:
        """Whether it is there; `staging` is when the run began to."""
        began = staging if self.staging else 0.0
        return began is not None and run.seconds >= began + self.seconds

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s after {'staging began' if self.staging else 'its start'}"


Doom = Point | Instant | None


@dataclass(frozen=True)
class Pace:
    """How a run goes when nobody kills it: seconds up to its first staged byte, seconds and requests in all."""

    staging: float = 0.0
    whole: float = 0.0
    requests: int = 1

    def doom(self, random: Random, sides: Sequence[Side]) -> Instant | Point:
        """A moment of such a run: of all of it, of the part in which it writes, or between its requests."""
        kind = random.randrange(3)
        if kind == 0:
            return Instant(random.uniform(0, self.whole))
        if kind == 1:
            return Instant(random.uniform(0, self.whole - self.staging), staging=True)
        return at_request(random.randint(1, self.requests), random.choice(sides))


@dataclass
class Attack:
    """The publishers, each with its doom; `known` are the attempts that had been staged before."""

    dooms: dict[Run, Doom]
    known: frozenset[str]
    staging: float | None = None
    ends: dict[Run, End] = field(default_factory=dict)

    @classmethod
    def begun(cls, place: Place, dooms: Sequence[Doom]) -> Attack:
        known = place.attempts()
        points = [doom if isinstance(doom, Point) else None for doom in dooms]
        runs = [place.start(f"publisher{number}", point) for number, point in enumerate(points, start=1)]
        return cls(dict(zip(runs, dooms, strict=True)), known)

    @property
    def kills(self) -> int:
        return sum(end.was_killed for end in self.ends.values())

    def watch(self, place: Place) -> None:
        """Kill whose moment has come, until all have ended."""
        try:
            while any(run.is_running for run in self.dooms):
                self._look(place)
                time.sleep(_TICK)
        finally:
            for run in self.dooms:
                run.kill()
        self.ends = {run: run.end() for run in self.dooms}

    def pace(self, place: Place) -> Pace | None:
        """How the run went, if all of it was done and nobody was killed."""
        if self.staging is None or self.kills:
            return None
        requests = max(place.requests(run.name) for run in self.dooms)
        return Pace(self.staging, max(end.seconds for end in self.ends.values()), requests)

    def require_well(self) -> None:
        """Raise Broken unless who was not killed ended well, and who was to be killed at a named point was."""
        for run, doom in self.dooms.items():
            end = self.ends[run]
            if not end.was_killed and end.code:
                raise Broken(f"exit code {end.code}: {end.output}")
            if isinstance(doom, Point) and doom.is_sure and not end.was_killed:
                raise Broken(f"never came to: {doom}")

    def _look(self, place: Place) -> None:
        if self.staging is None and place.attempts() - self.known:
            self.staging = max(run.seconds for run in self.dooms)
        for run, doom in self.dooms.items():
            if isinstance(doom, Instant) and doom.has_come(run, self.staging):
                run.kill()
