"""Many kills on one landing zone, while its source goes on and a stand-in applies what lands; then a run to the end."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random

from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.zones.onelake.onelake_zone import Staging
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.worlds.kills.on_onelake import OnOneLake
from mirror_assets_tests.worlds.kills.place import OnDisk, Place
from mirror_assets_tests.worlds.kills.points import DIRECT, ON_DISK, UPLOADED, Point, Side, at_request
from mirror_assets_tests.worlds.kills.process import End, Run
from mirror_assets_tests.worlds.kills.verdict import Verdict, judge
from mirror_assets_tests.worlds.onelake import LoopbackOneLake

_TICK = 0.01
# Every fifth attack is by two publishers; it is the second of five, so that a short series has one.
_OF_FIVE = 2
_CHANCE = re.compile(r"([0-9a-f]{12})[0-9a-f]{20}|-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-c000\.[a-z]+")


class Broken(AssertionError):
    """A run did what none may do."""


class Where(Enum):
    """Where the landing zone is, and who writes the parts there."""

    DISK = "disk"
    UPLOAD = "upload"
    DIRECT = "direct"

    @property
    def points(self) -> tuple[Point, ...]:
        """Every named point there."""
        return {Where.DISK: ON_DISK, Where.UPLOAD: UPLOADED, Where.DIRECT: DIRECT}[self]

    @contextmanager
    def opened(self, root: Path, server: LoopbackOneLake | None = None) -> Iterator[Place]:
        """Open an empty landing zone with a new source in a new folder."""
        if self is Where.DISK or server is None:
            with OnDisk.opened(root) as place:
                yield place
        else:
            with OnOneLake.opened(root, server, Staging(self.value)) as place:
                yield place

    def __str__(self) -> str:
        return "local disk" if self is Where.DISK else f"loopback OneLake, {self.value}"


@dataclass(frozen=True)
class Instant:
    """A moment by the clock: so many seconds after the run's start, or after it has begun to stage."""

    seconds: float
    staging: bool = False

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


class Series:
    """The kills of one landing zone; `show` gets a line for each publisher."""

    def __init__(self, place: Place, random: Random, show: Callable[[str], object]) -> None:
        self.place, self.random, self._show = place, random, show
        self.pace = Pace()
        self.kills = self.together = self.late = 0

    def kill_at(self, points: Sequence[Point]) -> None:
        """A kill at each point, one after another, with a commit of three parts in between."""
        for point in points:
            if self.place.eyes.newest:
                self.place.source.touch()
            self.attack(point)

    def kill_at_random(self, kills: int) -> None:
        """Kill this many at random moments. A run that has ended before its moment counts for none.

        A run that is not killed comes first, if none has shown how long one takes.
        """
        if kills and not self.pace.whole:
            self.attack(None)
        wanted = self.kills + kills
        for number in itertools.count(1):
            if self.kills >= wanted:
                return
            self.place.source.go_on(self.random)
            self.attack(*self._dooms(number))

    def finish(self) -> Verdict:
        """One more commit, a run to the end, and the verdict."""
        self.place.source.touch()
        self.attack(None)
        verdict = judge(self.place)
        self._show(str(verdict))
        return verdict

    def attack(self, *dooms: Doom) -> None:
        """Start a publisher for each doom, and let it come. Raises Broken when one that lives on does not end well.

        What the attack before has left on its way arrives when this one is over.
        """
        late, known = self.place.late(), self.place.attempts()
        runs = {
            self.place.start(f"publisher{number}", doom if isinstance(doom, Point) else None): doom
            for number, doom in enumerate(dooms, start=1)
        }
        with _applying(self.place) if self._coin() else nullcontext():
            staging = self._watch(runs, known)
        ends = {run: run.end() for run in runs}
        for arrive in late:
            arrive()
        self.place.settle()
        self.late += len(late)
        self.together += len(dooms) > 1
        if staging is not None and not any(end.was_killed for end in ends.values()):
            requests = max(len(self.place.sent(run.name)) for run in runs)
            self.pace = Pace(staging, max(end.seconds for end in ends.values()), requests)
        self._report(runs, ends)
        for run, doom in runs.items():
            if not ends[run].was_killed and ends[run].code:
                raise Broken(f"exit code {ends[run].code}: {ends[run].output}")
            if isinstance(doom, Point) and doom.is_sure and not ends[run].was_killed:
                raise Broken(f"never came to: {doom}")
        if self._coin():
            self.place.replicator.poll()

    def _watch(self, runs: dict[Run, Doom], known: frozenset[str]) -> float | None:
        """Kill whose moment has come, until all have ended; the seconds until one began to stage."""
        staging: float | None = None
        try:
            while any(run.is_running for run in runs):
                if staging is None and self.place.attempts() - known:
                    staging = max(run.seconds for run in runs)
                for run, doom in runs.items():
                    began = staging if isinstance(doom, Instant) and doom.staging else 0.0
                    if isinstance(doom, Instant) and began is not None and run.seconds >= began + doom.seconds:
                        run.kill()
                time.sleep(_TICK)
        finally:
            for run in runs:
                run.kill()
        return staging

    def _coin(self) -> bool:
        return self.random.random() < 0.5

    def _dooms(self, number: int) -> Sequence[Doom]:
        """Of two publishers either or both are doomed."""
        first, second = (self.pace.doom(self.random, self.place.sides) for _ in range(2))
        if number % 5 != _OF_FIVE:
            return (first,)
        return self.random.choice(((first, None), (None, second), (first, second)))

    def _report(self, runs: dict[Run, Doom], ends: dict[Run, End]) -> None:
        """Show where each publisher was, and what had landed when all had ended."""
        current = drive(read_manifest(TABLE), self.place.store)
        covered = current.manifest.covered if current else -1
        landed = f"{self.place.eyes.newest} files landed, version {covered} of {self.place.source.tip} covered"
        beside = ", one of two" if len(runs) > 1 else ""
        for run, doom in runs.items():
            self.kills += ends[run].was_killed
            number, how = "    ", "ended by itself"
            if ends[run].was_killed:
                number, how = f"{self.kills:>4}", f"killed {doom}"
            last = _CHANCE.sub(r"\1", [*(self.place.sent(run.name) or ["none"])][-1])
            self._show(f"{number}  {ends[run].seconds:5.1f} s  {how}{beside}; last request: {last}; {landed}")


@contextmanager
def _applying(place: Place) -> Iterator[None]:
    """Apply each file as soon as it has landed, as long as the block lasts."""
    failures: list[Exception] = []
    done = threading.Event()

    def apply_all() -> None:
        try:
            while not done.is_set():
                if place.eyes.wait(10 * _TICK):
                    place.replicator.poll()
        except Exception as error:  # noqa: BLE001 raised below
            failures.append(error)

    thread = threading.Thread(target=apply_all, name="stand-in", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if failures:
        raise failures[0]
