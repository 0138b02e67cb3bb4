"""Plant seventeen faults under a real daemon with the usual settings, and print which messages arrived, and when.

It takes about two hours: the checks run every five minutes.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirror_assets_tests.worlds.kills.__main__ import print_line
from mirror_assets_tests.worlds.planted.faults import HELD, NEVER_REBUILT, OF_ALL, OF_TABLES, TABLES, Fault
from mirror_assets_tests.worlds.planted.site import Site, site

_BEGUN_SECONDS, _ENDED_SECONDS = 1200.0, 1200.0
_EVENTS = {"Ended: ": "ended", "Still: ": "reminder", "Worse: ": "worse"}
_INCIDENT = re.compile(r"^Incident (\S+),", re.MULTILINE)


@dataclass(frozen=True)
class Arrived:
    """A message as a receiver got it through Apprise."""

    title: str
    text: str

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Arrived:
        return cls(body["title"], body["message"])

    @property
    def event(self) -> str:
        return next((event for prefix, event in _EVENTS.items() if self.title.startswith(prefix)), "begun")

    @property
    def incident(self) -> str:
        found = _INCIDENT.search(self.text)
        assert found is not None, self.text
        return found[1]

    def __str__(self) -> str:
        return f"{self.title}: {self.text}".replace("\n", " / ")


@dataclass
class PlantedFault:
    """A planted fault; times are of `time.monotonic`. `messages` are those of its incident, in order."""

    fault: Fault
    planted: float
    repaired: float | None = None
    begun: float | None = None
    ended: float | None = None
    messages: list[Arrived] = field(default_factory=list)

    @property
    def is_once(self) -> bool:
        """Whether it was reported once, repeated once each half a day, and its end reported once."""
        events = [message.event for message in self.messages]
        return self.fault.is_dead is not None or events == ["begun", *["reminder"] * self.fault.half_days, "ended"]

    @property
    def line(self) -> str:
        until = "never" if self.begun is None else f"{self.begun - self.planted:.0f}"
        end = "never" if self.ended is None or self.repaired is None else f"{self.ended - self.repaired:.0f}"
        first = self.messages[0] if self.messages else ""
        return f"| {self.fault.name} | {until} | {end} | {self._sent} | {first} |"

    @property
    def _sent(self) -> str:
        if self.fault.is_dead is not None:
            return "by the metrics"
        counts = Counter(message.event for message in self.messages)
        others = [f"{count} {event}" for event, count in counts.items() if event not in ("begun", "ended")]
        return ", ".join((f"{counts['begun']} and {counts['ended']}", *others))


class Watch:
    """Sorts what arrives by the faults that are planted; `others` are messages that no fault explains."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.faults: list[PlantedFault] = []
        self.others: list[Arrived] = []
        self._seen = len(site.hook.bodies)

    def plant(self, fault: Fault) -> PlantedFault:
        planted = PlantedFault(fault, time.monotonic())
        self.faults.append(planted)
        fault.plant(self.site)
        return planted

    def repair(self, planted: PlantedFault) -> None:
        """Repair the fault; the time counts from the end of what a person does."""
        planted.fault.repair(self.site)
        planted.repaired = time.monotonic()

    def until_begun(self, wanted: Sequence[PlantedFault]) -> None:
        """Wait until all are reported, or it takes too long."""
        self._until(lambda: all(planted.begun is not None for planted in wanted), _BEGUN_SECONDS)

    def until_ended(self, wanted: Sequence[PlantedFault]) -> None:
        """Wait until the end of all is reported, or it takes too long."""
        self._until(lambda: all(planted.ended is not None for planted in wanted), _ENDED_SECONDS)

    def stay(self, seconds: float) -> None:
        self._until(lambda: False, seconds)

    def _until(self, is_over: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not is_over() and time.monotonic() < deadline:
            self._look()
            time.sleep(0.2)

    def _look(self) -> None:
        for planted in self.faults:
            if planted.fault.is_dead is not None and planted.ended is None:
                self._ask(planted)
        arrived = self.site.hook.bodies[self._seen :]
        self._seen += len(arrived)
        for message in arrived:
            self._sort(Arrived.of(message))

    def _ask(self, planted: PlantedFault) -> None:
        assert planted.fault.is_dead is not None
        is_dead = planted.fault.is_dead(self.site)
        if is_dead and planted.begun is None:
            planted.begun = time.monotonic()
        elif planted.begun is not None and planted.repaired is not None and not is_dead:
            planted.ended = time.monotonic()

    def _sort(self, message: Arrived) -> None:
        owner = next((planted for planted in self.faults if _is_of(message, planted)), None)
        if owner is None:
            self.others.append(message)
            return
        owner.messages.append(message)
        if message.event == "ended":
            owner.ended = time.monotonic()
        elif owner.begun is None:
            owner.begun = time.monotonic()


def _is_of(message: Arrived, planted: PlantedFault) -> bool:
    """Return whether the message is of the fault's incident, or begins it."""
    if planted.messages:
        return message.incident == planted.messages[0].incident
    fault = planted.fault
    if fault.is_dead is not None or message.event != "begun" or planted.ended is not None:
        return False
    is_tables = fault.table is None or f"shop.{fault.table}" in str(message)
    return is_tables and fault.says in str(message)


_FIRST_LOAD_SECONDS = 600.0
# After the clock has jumped: the checks run once.
_HALF_A_DAY_SECONDS = 420.0


def _first_load(place: Site) -> float:
    """Wait until all tables have landed, and the checks have run; return the seconds. Raises TimeoutError."""
    began = time.monotonic()
    while time.monotonic() - began < _FIRST_LOAD_SECONDS:
        found = {key: value for key, value in place.metrics().items() if key[0] == "mirror_covered_version"}
        if sum(version >= 0 for version in found.values()) == len(place.tables):
            return time.monotonic() - began
        time.sleep(0.5)
    message = f"not all tables have landed within {_FIRST_LOAD_SECONDS:.0f} s; see the logs in {place.processes.home}"
    raise TimeoutError(message)


def plant_of_tables(watch: Watch, faults: list[Fault]) -> None:
    """Plant all at once; repair all when all are reported."""
    planted = [watch.plant(fault) for fault in faults]
    print_line(f"planted: {', '.join(fault.name for fault in faults)}")
    watch.until_begun(planted)
    for found in planted:
        print_line(found.line)
    for found in planted:
        watch.repair(found)
    watch.until_ended(planted)
    for found in planted:
        print_line(found.line)


def plant_of_all(watch: Watch, fault: Fault, down_seconds: float | None) -> None:
    """Plant the fault alone; `down_seconds` replaces the time for which it has the receiver down."""
    watch.site.hook.is_down = fault.down_seconds > 0
    found = watch.plant(fault)
    print_line(f"planted: {fault.name}")
    if fault.down_seconds:
        watch.stay(fault.down_seconds if down_seconds is None else down_seconds)
    watch.site.hook.is_down = False
    watch.until_begun([found])
    watch.stay(fault.lasts)
    for _ in range(fault.half_days):
        watch.site.advance_clock()
        watch.stay(_HALF_A_DAY_SECONDS)
    watch.repair(found)
    watch.until_ended([found])
    print_line(found.line)


def main() -> int:
    """Exit code 0 when each fault was reported once, its end once, and nothing else was reported."""
    parser = argparse.ArgumentParser(prog="python -m mirror_assets_tests.worlds.planted", description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of faults (default: all)")
    parser.add_argument("--folder", type=Path, help="a new folder, which is kept (default: one that is not)")
    parser.add_argument("--down-seconds", type=float, help="how long the receiver is down (default: ten minutes)")
    options = parser.parse_args()
    chosen = [fault for fault in OF_TABLES if not options.only or fault.name in options.only]
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="mirror-assets-planted-")
        folder = options.folder or Path(stack.enter_context(temporary))
        place = stack.enter_context(site(folder.resolve(), TABLES, HELD))
        watch = Watch(place)
        print_line(f"first load: {_first_load(place):.0f} s")
        if chosen:
            plant_of_tables(watch, chosen)
        for fault in OF_ALL:
            if not options.only or fault.name in options.only:
                plant_of_all(watch, fault, options.down_seconds)
        watch.stay(60.0)
        print_line("| fault | seconds until reported | until its end | messages | the first |\n|---|---|---|---|---|")
        for found in watch.faults:
            print_line(found.line)
        for message in watch.others:
            print_line(f"unexplained: {message.event} {message}")
        epochs = {table: place.epoch(table) for table in NEVER_REBUILT}
        print_line(f"epochs: {epochs}")
    is_well = all(found.is_once and found.ended for found in watch.faults) and set(epochs.values()) == {1}
    return 0 if is_well and not watch.others else 1


if __name__ == "__main__":
    sys.exit(main())
