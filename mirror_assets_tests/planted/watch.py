"""What a receiver was told of a fault: when, by which words, and how often."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirror_assets_tests.planted.faults import Fault
from mirror_assets_tests.planted.site import Site

_TOLD_SECONDS, _ENDED_SECONDS = 1200.0, 1200.0
_EVENTS = {"Ended: ": "ended", "Still: ": "reminder", "Worse: ": "worse"}
_INCIDENT = re.compile(r"^Incident (\S+),", re.MULTILINE)


@dataclass(frozen=True)
class Arrived:
    """A message as a receiver got it through Apprise."""

    title: str
    text: str

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Arrived:
        """Return the message that Apprise's JSON has."""
        return cls(body["title"], body["message"])

    @property
    def event(self) -> str:
        """Why it was sent."""
        return next((event for prefix, event in _EVENTS.items() if self.title.startswith(prefix)), "begun")

    @property
    def incident(self) -> str:
        """The id of its incident."""
        found = _INCIDENT.search(self.text)
        assert found is not None, self.text
        return found[1]

    def __str__(self) -> str:
        """Its title and text in one line."""
        return f"{self.title}: {self.text}".replace("\n", " / ")


@dataclass
class Told:
    """A planted fault; times are of `time.monotonic`. `messages` are those of its incident, in order."""

    fault: Fault
    planted: float
    mended: float | None = None
    begun: float | None = None
    ended: float | None = None
    messages: list[Arrived] = field(default_factory=list)

    @property
    def is_once(self) -> bool:
        """Whether it was told once, repeated once each half a day, and its end told once."""
        events = [message.event for message in self.messages]
        return self.fault.is_dead is not None or events == ["begun", *["reminder"] * self.fault.half_days, "ended"]

    @property
    def line(self) -> str:
        """The fault as a line of a table."""
        until = "never" if self.begun is None else f"{self.begun - self.planted:.0f}"
        end = "never" if self.ended is None or self.mended is None else f"{self.ended - self.mended:.0f}"
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
        self.told: list[Told] = []
        self.others: list[Arrived] = []
        self._seen = len(site.hook.bodies)

    def plant(self, fault: Fault) -> Told:
        """Plant the fault now."""
        told = Told(fault, time.monotonic())
        self.told.append(told)
        fault.plant(self.site)
        return told

    def mend(self, told: Told) -> None:
        """Mend the fault; the time counts from the end of what a person does."""
        if told.fault.mend is None:
            told.mended = told.planted
            return
        told.fault.mend(self.site)
        told.mended = time.monotonic()

    def until_begun(self, wanted: Sequence[Told]) -> None:
        """Wait until all are told, or it takes too long."""
        self._until(lambda: all(told.begun is not None for told in wanted), _TOLD_SECONDS)

    def until_ended(self, wanted: Sequence[Told]) -> None:
        """Wait until the end of all is told, or it takes too long."""
        self._until(lambda: all(told.ended is not None for told in wanted), _ENDED_SECONDS)

    def stay(self, seconds: float) -> None:
        """Watch for so long."""
        self._until(lambda: False, seconds)

    def _until(self, is_over: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not is_over() and time.monotonic() < deadline:
            self._look()
            time.sleep(0.2)

    def _look(self) -> None:
        for told in self.told:
            if told.fault.is_dead is not None and told.ended is None:
                self._ask(told)
        arrived = self.site.hook.bodies[self._seen :]
        self._seen += len(arrived)
        for message in arrived:
            self._sort(Arrived.of(message))

    def _ask(self, told: Told) -> None:
        assert told.fault.is_dead is not None
        is_dead = told.fault.is_dead(self.site)
        if is_dead and told.begun is None:
            told.begun = time.monotonic()
        elif told.begun is not None and told.mended is not None and not is_dead:
            told.ended = time.monotonic()

    def _sort(self, message: Arrived) -> None:
        owner = next((told for told in self.told if _is_of(message, told)), None)
        if owner is None:
            self.others.append(message)
            return
        owner.messages.append(message)
        if message.event == "ended":
            owner.ended = time.monotonic()
        elif owner.begun is None:
            owner.begun = time.monotonic()


def _is_of(message: Arrived, told: Told) -> bool:
    """Return whether the message is of the fault's incident, or begins it."""
    if told.messages:
        return message.incident == told.messages[0].incident
    fault = told.fault
    if fault.is_dead is not None or message.event != "begun" or told.ended is not None:
        return False
    is_tables = fault.table is None or f"shop.{fault.table}" in str(message)
    return is_tables and fault.says in str(message)
