"""Incidents: conditions grouped by cause, and what each receiver has been sent of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum

import pydantic

from mirror_assets.alerts.conditions import Condition, ConditionKind
from mirror_assets.config.alerts import Severity

# An incident is reported after this time, with other conditions of its cause; it ends when none was left for this long.
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


class Value(pydantic.BaseModel):
    """A value that is saved in Dagster's storage as JSON."""

    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")


class Sent(Value):
    """The newest message about an incident that a receiver has taken."""

    event: Event
    severity: Severity
    at_ms: int


class Incident(Value):
    """One cause and its conditions.

    `members` are its conditions now, or the last ones since `gone_ms`, when none was left. `subjects` are all that it
    has had, and `example` its worst condition so far. It is reported from `reported_ms` on. `sent` has the receivers.
    """

    id: str
    cause: str
    example: Condition
    members: tuple[Condition, ...]
    subjects: tuple[str, ...]
    began_ms: int
    reported_ms: int | None = None
    gone_ms: int | None = None
    sent: dict[str, Sent] = pydantic.Field(default_factory=dict)

    def has_ended(self, now_ms: int) -> bool:
        """Return whether no condition was left for long enough."""
        return self.gone_ms is not None and now_ms - self.gone_ms >= SETTLE_MS

    def with_members(self, members: Iterable[Condition]) -> Incident:
        """Return the incident with these members; its example is the worst so far, in its newest wording."""
        found, example = tuple(members), self.example
        for one in found:
            is_worse = one.severity.rank > example.severity.rank
            if is_worse or (one.id == example.id and one.severity is example.severity):
                example = replace(one, code=one.code or example.code)
        subjects = tuple(dict.fromkeys((*self.subjects, *(one.subject for one in found))))[:_MOST_SUBJECTS]
        return self.model_copy(update={"members": found, "example": example, "subjects": subjects, "gone_ms": None})

    def keeps(self, one: Condition) -> bool:
        """Return whether one of its conditions has the same fault as before, though its message may have changed."""
        codes = {one.code, self.example.code} - {None}
        return one.cause == self.cause or one.is_passing or (len(codes) < 2 and not one.is_shared)

    def takes(self, one: Condition) -> bool:
        """Return whether a new condition joins the incident."""
        is_known = self.reported_ms is None or one.is_shared or one.subject in self.subjects
        is_place = any(member.kind is ConditionKind.PLACE for member in self.members)
        return self.cause == one.cause and (is_known or is_place)

    def due(self, receiver: str, minimum: Severity, now_ms: int, remind_ms: int | None) -> Event | None:
        """Return which message the receiver gets next, or None."""
        sent, severity = self.sent.get(receiver), self.example.severity
        if self.reported_ms is None or severity.rank < minimum.rank or (sent and sent.event is Event.ENDED):
            return None
        if sent is None:
            return Event.BEGUN
        if self.gone_ms is not None:
            return Event.ENDED if self.has_ended(now_ms) else None
        if severity.rank > sent.severity.rank:
            return Event.WORSE
        return Event.REMINDER if remind_ms is not None and now_ms - sent.at_ms >= remind_ms else None

    def is_reportable(self, now_ms: int, confirm_ms: int) -> bool:
        """Return whether its conditions have held long enough; a result that may be outdated waits for other checks."""
        outdated = (0 < one.since_ms < self.began_ms - _FRESH_MS for one in self.members)
        return self.gone_ms is None and now_ms - self.began_ms >= (confirm_ms if all(outdated) else GATHER_MS)


def advance(
    incidents: Iterable[Incident], conditions: Mapping[str, Condition], now_ms: int, confirm_ms: int = GATHER_MS
) -> list[Incident]:
    """Return the incidents given the current conditions by id; those that have ended are returned unchanged.

    A condition that follows from another one is left out until that one's incident has ended; if it still holds then,
    it is reported. A condition that was reported before stays in its incident until it ends itself. `confirm_ms` is how
    long a recorded result that may be outdated waits: the checks run again meanwhile.
    """
    ended = [one for one in incidents if one.has_ended(now_ms)]
    kept, before = list[Incident](), [one for one in incidents if not one.has_ended(now_ms)]
    shown = _not_hidden(before, conditions)
    for incident in before:
        current = shown if incident.reported_ms is None else conditions
        found = [current[one.id] for one in incident.members if one.id in current]
        members = [one for one in found if incident.keeps(one)]
        gone = incident.model_copy(update={"gone_ms": incident.gone_ms or now_ms})
        kept.append(incident.with_members(members) if members else gone)
    placed = {one.id for incident in kept if incident.gone_ms is None for one in incident.members}
    for one in shown.values():
        if one.id not in placed and not one.is_passing:
            _place(kept, one, now_ms)
    for number, incident in enumerate(kept):
        if incident.reported_ms is None and incident.is_reportable(now_ms, confirm_ms):
            kept[number] = incident.model_copy(update={"reported_ms": now_ms})
    return [*ended, *kept]


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


def _place(incidents: list[Incident], one: Condition, now_ms: int) -> None:
    """Add the condition to the incident that takes it, or to a new one."""
    for number, incident in enumerate(incidents):
        if incident.takes(one):
            incidents[number] = incident.with_members((*(() if incident.gone_ms else incident.members), one))
            return
    name = f"{now_ms // 1000}-{hashlib.sha256(f'{one.cause} {one.id}'.encode()).hexdigest()[:8]}"
    new = Incident(id=name, cause=one.cause, example=one, members=(one,), subjects=(one.subject,), began_ms=now_ms)
    incidents.append(new)
