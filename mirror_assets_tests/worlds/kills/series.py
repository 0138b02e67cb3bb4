"""Many kills on one landing zone, while its source goes on and a stand-in applies what lands; then a run to the end."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from random import Random

from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.worlds.kills.attack import Attack, Doom, Pace
from mirror_assets_tests.worlds.kills.place import Place
from mirror_assets_tests.worlds.kills.points import Point
from mirror_assets_tests.worlds.kills.verdict import Verdict, judge

_TICK = 0.1
# Every fifth attack is by two publishers; it is the second of five, so that a short series has one.
_OF_FIVE = 2
_CHANCE = re.compile(r"([0-9a-f]{12})[0-9a-f]{20}|-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-c000\.[a-z]+")


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
                self.place.ground.source.touch()
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
            self.place.ground.source.go_on(self.random)
            self.attack(*self._dooms(number))

    def finish(self) -> Verdict:
        """One more commit, a run to the end, and the verdict."""
        self.place.ground.source.touch()
        self.attack(None)
        verdict = judge(self.place)
        self._show(str(verdict))
        return verdict

    def attack(self, *dooms: Doom) -> Attack:
        """Start a publisher for each doom, and let it come. Raises Broken when one that lives on does not end well.

        What the attack before has left on its way arrives when this one is over.
        """
        late = self.place.late()
        attack = Attack.begun(self.place, dooms)
        with _applying(self.place) if self._coin() else nullcontext():
            attack.watch(self.place)
        for arrive in late:
            arrive()
        self.place.settle()
        self.late += len(late)
        self._report(attack)
        attack.require_well()
        if self._coin():
            self.place.ground.replicator(self.place.store).poll()
        return attack

    def _coin(self) -> bool:
        return self.random.random() < 0.5

    def _dooms(self, number: int) -> Sequence[Doom]:
        if number % 5 != _OF_FIVE:
            return (self._doom(),)
        first, second = self._doom(), self._doom()
        return self.random.choice(((first, None), (None, second), (first, second)))

    def _doom(self) -> Doom:
        return self.pace.doom(self.random, self.place.sides)

    def _report(self, attack: Attack) -> None:
        self.pace = attack.pace(self.place) or self.pace
        self.together += len(attack.dooms) > 1
        for line in self._lines(attack):
            self._show(line)

    def _lines(self, attack: Attack) -> Iterator[str]:
        """Where each publisher was, and what had landed when all had ended."""
        current = drive(read_manifest(TABLE), self.place.store)
        covered, tip = current.manifest.covered if current else -1, self.place.ground.source.tip
        landed = f"{self.place.eyes.newest} files landed, version {covered} of {tip} covered"
        beside = ", one of two" if len(attack.dooms) > 1 else ""
        for run, doom in attack.dooms.items():
            end = attack.ends[run]
            self.kills += end.was_killed
            number, how = (f"{self.kills:>4}", f"killed {doom}") if end.was_killed else ("    ", "ended by itself")
            last = _CHANCE.sub(r"\1", self.place.last_request(run.name))
            yield f"{number}  {end.seconds:5.1f} s  {how}{beside}; last request: {last}; {landed}"


@contextmanager
def _applying(place: Place) -> Iterator[None]:
    """Apply each file as soon as it has landed, as long as the block lasts."""
    failures: list[Exception] = []
    done = threading.Event()

    def apply_all() -> None:
        try:
            while not done.is_set():
                if place.eyes.wait(_TICK):
                    place.ground.replicator(place.store).poll()
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
