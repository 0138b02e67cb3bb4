"""Incidents: conditions grouped by cause, and the messages that are due for them.

A pure function from the current conditions and the open incidents to the open incidents and the messages that are due.
It knows no receiver and no clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import Enum

from mirror_assets.alerts.conditions import Condition, Kind, Value
from mirror_assets.config.alerts import Severity

# A message waits this long for other conditions of its cause; an incident has ended when none was left for so long.
GATHER_MS, SETTLE_MS = 30_000, 60_000
# A recorded result of a check or run that is older than this when it is first seen may be out of date.
_FRESH_MS = 60_000
_MOST_SUBJECTS = 1000


class Event(str, Enum):
    """Why a message is sent."""

    BEGUN = "begun"
    WORSE = "worse"
    REMINDER = "reminder"
    ENDED = "ended"
    TEST = "test"


class Incident(Value):
    """One cause and its conditions.

    `members` are its conditions now, or the last ones since `gone_ms`, when none was left. `subjects` are all that it
    has had, and `example` its worst condition so far. `sent_ms` is when its newest message was made, None before the
    first.
    """

    id: str
    cause: str
    example: Condition
    members: tuple[Condition, ...]
    subjects: tuple[str, ...]
    began_ms: int
    sent_ms: int | None = None
    sent_severity: Severity = Severity.INFO
    gone_ms: int | None = None

    def with_members(self, members: Iterable[Condition]) -> Incident:
        """Return the incident with these members; its example is the worst so far, in its newest wording."""
        found, example = tuple(members), self.example
        for one in found:
            is_worse = one.severity.rank > example.severity.rank
            if is_worse or (one.id == example.id and one.severity is example.severity):
                example = one
        subjects = tuple(dict.fromkeys((*self.subjects, *(one.subject for one in found))))[:_MOST_SUBJECTS]
        return self.model_copy(update={"members": found, "example": example, "subjects": subjects, "gone_ms": None})

    def takes(self, one: Condition) -> bool:
        """Return whether a new condition joins the incident."""
        is_known = self.sent_ms is None or one.is_shared or one.subject in self.subjects
        return self.cause == one.cause and is_known

    def due(self, now_ms: int, confirm_ms: int, remind_ms: int | None) -> Event | None:
        """Return which message is due, or None. An incident that ends before its first message is never reported."""
        if self.sent_ms is None:
            wait = confirm_ms if all(self._may_be_outdated(one) for one in self.members) else GATHER_MS
            return Event.BEGUN if self.gone_ms is None and now_ms - self.began_ms >= wait else None
        if self.gone_ms is not None:
            return Event.ENDED if now_ms - self.gone_ms >= SETTLE_MS else None
        if self.example.severity.rank > self.sent_severity.rank:
            return Event.WORSE
        return Event.REMINDER if remind_ms is not None and now_ms - self.sent_ms >= remind_ms else None

    def _may_be_outdated(self, one: Condition) -> bool:
        return one.kind in (Kind.CHECK, Kind.RUN) and self.began_ms - one.since_ms > _FRESH_MS


def advance(
    incidents: Iterable[Incident],
    conditions: Mapping[str, Condition],
    now_ms: int,
    confirm_ms: int = GATHER_MS,
    remind_ms: int | None = None,
) -> tuple[tuple[Incident, ...], list[tuple[Event, Incident]]]:
    """Return the open incidents and the messages that are due, given the current conditions by id.

    A condition that follows from another one is left out until that one's incident has ended; if it still holds then,
    it is reported. A condition that was reported before stays in its incident until it ends itself. `confirm_ms` is how
    long a recorded result that may be outdated waits: the checks run again meanwhile.
    """
    kept, shown = list[Incident](), _not_hidden(list(incidents), conditions)
    for incident in incidents:
        current = conditions if incident.sent_ms is not None else shown
        members = [current[one.id] for one in incident.members if one.id in current]
        members = [one for one in members if one.cause == incident.cause or one.is_passing]
        kept.append(incident.with_members(members) if members else _gone(incident, now_ms))
    placed = {one.id for incident in kept if incident.gone_ms is None for one in incident.members}
    for one in shown.values():
        if one.id not in placed and not one.is_passing:
            _place(kept, one, now_ms)
    still_open, due = list[Incident](), list[tuple[Event, Incident]]()
    for incident in kept:
        event = incident.due(now_ms, confirm_ms, remind_ms)
        update = {"sent_ms": now_ms, "sent_severity": incident.example.severity}
        after = incident.model_copy(update=update) if event is not None else incident
        due += [(event, after)] if event is not None else []
        if after.gone_ms is None or now_ms - after.gone_ms < SETTLE_MS:
            still_open.append(after)
    return tuple(still_open), due


def _not_hidden(incidents: Iterable[Incident], conditions: Mapping[str, Condition]) -> dict[str, Condition]:
    """Return the conditions that follow from no other one, nor from one whose incident has yet to end.

    A first failure that may pass hides nothing, because it is not reported itself.
    """
    by_subject: dict[str, list[Condition]] = {}
    reported = (member for incident in incidents for member in incident.members)
    for one in (*(one for one in conditions.values() if not one.is_passing), *reported):
        by_subject.setdefault(one.subject, []).append(one)
    return {
        key: one
        for key, one in conditions.items()
        if not any(other.id != key and one.follows_from(other) for other in by_subject.get(one.subject, ()))
    }


def _gone(incident: Incident, now_ms: int) -> Incident:
    return incident if incident.gone_ms is not None else incident.model_copy(update={"gone_ms": now_ms})


def _place(incidents: list[Incident], one: Condition, now_ms: int) -> None:
    """Add the condition to the incident that takes it, or to a new one."""
    for number, incident in enumerate(incidents):
        if incident.takes(one):
            incidents[number] = incident.with_members((*(() if incident.gone_ms else incident.members), one))
            return
    digest = hashlib.sha256(f"{one.cause}\n{one.id}".encode()).hexdigest()[:8]
    name, subjects = f"{now_ms // 1000}-{digest}", (one.subject,)
    began = {"id": name, "cause": one.cause, "example": one, "members": (one,), "subjects": subjects}
    incidents.append(Incident.model_validate({**began, "began_ms": now_ms}))
