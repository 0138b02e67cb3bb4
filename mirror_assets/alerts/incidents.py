"""The incidents: conditions grouped by cause, each told when it begins, again at intervals, and when it ends.

A pure function from what is wrong now to the messages that are due. It knows no receiver and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from mirror_assets.alerts.conditions import Condition, Value
from mirror_assets.config.alerts import Severity, Topic

# Names of subjects that are kept of an incident that has many.
_NAMES_KEPT = 1000
# PagerDuty's key of an incident has 255 characters at most.
_LONGEST_ID = 200


class Told(str, Enum):
    """Why a message is sent."""

    BEGUN = "begun"
    WORSE = "worse"
    REMINDER = "reminder"
    ENDED = "ended"
    TEST = "test"


class Incident(Value):
    """One cause, and what it does.

    `topic` is that of the condition with which it began, and does not change: who was told of its beginning is told of
    its end. `members` are its conditions now. `subjects` are all that it has had. `example` is its worst condition so
    far, and `severity` that one's. `told_ms` is when its newest message was made, None before the first; `gone_ms` is
    since when no condition is left.
    """

    id: str
    cause: str
    topic: Topic
    example: Condition
    members: tuple[Condition, ...]
    subjects: tuple[str, ...]
    began_ms: int
    told_ms: int | None = None
    told_severity: Severity | None = None
    gone_ms: int | None = None

    @property
    def severity(self) -> Severity:
        """The severity of its worst condition so far."""
        return self.example.severity


@dataclass(frozen=True)
class Pace:
    """When messages are due, in milliseconds.

    A message waits `gather` for other conditions of its cause; an incident ends when none was left for `settle`;
    reminders come each `remind`, or never for None.
    """

    gather: int
    settle: int
    remind: int | None


@dataclass(frozen=True)
class Due:
    """A message that is due, of an incident as it is now."""

    told: Told
    incident: Incident


@dataclass(frozen=True)
class Turn:
    """The incidents after a turn, and the messages that it has made due."""

    incidents: tuple[Incident, ...]
    due: tuple[Due, ...]


def advance(incidents: Iterable[Incident], now_wrong: Mapping[str, Condition], now_ms: int, pace: Pace) -> Turn:
    """Return the incidents after what is wrong at `now_ms`, by condition id, and the messages that are due.

    Each incident is told once when it begins and once when it ends. A condition of a known cause joins its incident if
    that has not been told yet, if its fault is a shared one (`joins`), or if it was in there before; else it begins an
    incident of its own.
    """
    kept = [_with_members(incident, now_wrong, now_ms) for incident in incidents]
    placed = {member.id for incident in kept for member in incident.members}
    news = [condition for condition in now_wrong.values() if condition.id not in placed]
    for condition in news:
        place = next((n for n, incident in enumerate(kept) if _takes(incident, condition)), None)
        if place is None:
            kept.append(_begin(condition, now_ms, kept))
        else:
            kept[place] = _joined(kept[place], condition)
    due: list[Due] = []
    open_still: list[Incident] = []
    for incident in kept:
        after, messages = _tell(incident, now_ms, pace)
        due += messages
        if after is not None:
            open_still.append(after)
    return Turn(tuple(open_still), tuple(due))


def _with_members(incident: Incident, now_wrong: Mapping[str, Condition], now_ms: int) -> Incident:
    """Return the incident with those of its conditions that still hold, as they are now."""
    still = [now_wrong[member.id] for member in incident.members if member.id in now_wrong]
    members = tuple(member for member in still if _stays(incident, member))
    gone = None if members else incident.gone_ms or now_ms
    changed = incident.model_copy(update={"members": members, "gone_ms": gone})
    return _worst(changed, members)


def _stays(incident: Incident, condition: Condition) -> bool:
    """Return whether the condition is still one of the incident's: of the same fault, whatever words it has now."""
    if condition.cause == incident.cause:
        return True
    return condition.code is not None and condition.code == incident.example.code and not condition.joins


def _takes(incident: Incident, condition: Condition) -> bool:
    if incident.cause != condition.cause:
        return False
    return incident.told_ms is None or condition.joins or condition.subject in incident.subjects


def _begin(condition: Condition, now_ms: int, others: Iterable[Incident]) -> Incident:
    taken = {incident.id for incident in others}
    plain = f"{now_ms}-{condition.cause}".replace(" ", "-")[:_LONGEST_ID]
    number = next(n for n in range(1, len(taken) + 2) if f"{plain}-{n}" not in taken)
    return Incident(
        id=f"{plain}-{number}",
        cause=condition.cause,
        topic=condition.topic,
        example=condition,
        members=(condition,),
        subjects=(condition.subject,),
        began_ms=now_ms,
    )


def _joined(incident: Incident, condition: Condition) -> Incident:
    known = incident.subjects
    subjects = known if condition.subject in known else (*known, condition.subject)[:_NAMES_KEPT]
    members = (*incident.members, condition)
    changed = incident.model_copy(update={"members": members, "subjects": subjects, "gone_ms": None})
    return _worst(changed, (condition,))


def _worst(incident: Incident, members: Iterable[Condition]) -> Incident:
    """Return the incident with the worst of its example and the members as its example."""
    example = incident.example
    for member in members:
        if member.severity.rank > example.severity.rank or member.id == example.id:
            example = member if member.severity.rank >= example.severity.rank else example
    return incident if example is incident.example else incident.model_copy(update={"example": example})


def _tell(incident: Incident, now_ms: int, pace: Pace) -> tuple[Incident | None, list[Due]]:
    """Return the incident after its message, None when it has ended, and the message, if one is due."""
    told = _due(incident, now_ms, pace)
    if told is None:
        return incident, []
    if told is Told.ENDED:
        return None, [Due(told, incident)]
    after = incident.model_copy(update={"told_ms": now_ms, "told_severity": incident.severity})
    return after, [Due(told, after)]


def _due(incident: Incident, now_ms: int, pace: Pace) -> Told | None:
    """Return which message is due, or None."""
    if incident.told_ms is None or incident.told_severity is None:
        return Told.BEGUN if now_ms - incident.began_ms >= pace.gather else None
    if incident.gone_ms is not None:
        return Told.ENDED if now_ms - incident.gone_ms >= pace.settle else None
    if incident.severity.rank > incident.told_severity.rank:
        return Told.WORSE
    is_late = pace.remind is not None and now_ms - incident.told_ms >= pace.remind
    return Told.REMINDER if is_late else None
