"""The messages that a receiver got about a fault: when, with which text, and how often."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirror_assets_tests.worlds.planted.faults import Fault
from mirror_assets_tests.worlds.planted.site import Site

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
