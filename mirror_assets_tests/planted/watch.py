"""What a receiver was told of a fault: when, by which words, and how often."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirror_assets_tests.planted.faults import Fault
from mirror_assets_tests.planted.site import Site

_TOLD_SECONDS, _ENDED_SECONDS = 600.0, 900.0


@dataclass
class Told:
    """A planted fault; times are of `time.monotonic`. `messages` are those of its incident, in order."""

    fault: Fault
    planted: float
    mended: float | None = None
    begun: float | None = None
    ended: float | None = None
    messages: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def is_once(self) -> bool:
        """Whether it was told once, and its end once."""
        events = [message["event"] for message in self.messages]
        return self.fault.is_dead is not None or events == ["begun", "ended"]

    @property
    def line(self) -> str:
        """The fault as a line of a table."""
        until = "never" if self.begun is None else f"{self.begun - self.planted:.0f}"
        end = "never" if self.ended is None or self.mended is None else f"{self.ended - self.mended:.0f}"
        first: Mapping[str, Any] = self.messages[0] if self.messages else {}
        said = f"{first['title']}: {first['text']} -> {first['next_step']}" if first else ""
        return f"| {self.fault.name} | {until} | {end} | {self._sent} | {said} |"

    @property
    def _sent(self) -> str:
        if self.fault.is_dead is not None:
            return "by the metrics"
        counts = Counter(message["event"] for message in self.messages)
        others = [f"{count} {event}" for event, count in counts.items() if event not in ("begun", "ended")]
        return ", ".join((f"{counts['begun']} and {counts['ended']}", *others))


class Watch:
    """Sorts what arrives by the faults that are planted; `others` are messages that no fault explains."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.told: list[Told] = []
        self.others: list[Mapping[str, Any]] = []
        self._seen = len(site.hook.bodies)

    def plant(self, fault: Fault) -> Told:
        """Plant the fault now."""
        told = Told(fault, time.monotonic())
        self.told.append(told)
        fault.plant(self._site)
        return told

    def mend(self, told: Told) -> None:
        """Mend the fault; the time counts from the end of what a person does."""
        if told.fault.mend is None:
            told.mended = told.planted
            return
        told.fault.mend(self._site)
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
        arrived = self._site.hook.bodies[self._seen :]
        self._seen += len(arrived)
        for message in arrived:
            self._sort(message)

    def _ask(self, told: Told) -> None:
        assert told.fault.is_dead is not None
        is_dead = told.fault.is_dead(self._site)
        if is_dead and told.begun is None:
            told.begun = time.monotonic()
        elif told.begun is not None and told.mended is not None and not is_dead:
            told.ended = time.monotonic()

    def _sort(self, message: Mapping[str, Any]) -> None:
        owner = next((told for told in self.told if _is_of(message, told)), None)
        if owner is None:
            if "a person wanted it" not in message["text"]:  # as those do who mend a fault by a rebuild
                self.others.append(message)
            return
        owner.messages.append(message)
        if message["event"] == "ended":
            owner.ended = time.monotonic()
        elif owner.begun is None:
            owner.begun = time.monotonic()


def _is_of(message: Mapping[str, Any], told: Told) -> bool:
    """Return whether the message is of the fault's incident, or begins it."""
    if told.messages:
        return bool(message["incident"] == told.messages[0]["incident"])
    fault, said = told.fault, f"{message['title']} {message['text']} {message['code']}"
    if fault.is_dead is not None or message["event"] != "begun" or told.ended is not None:
        return False
    if fault.table is not None:
        return f"shop.{fault.table}" in message["subjects"] and fault.says in said
    return fault.says in said
