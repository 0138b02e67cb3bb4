"""Messages: what a receiver gets for an incident, in plain text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from urllib.parse import quote

from mirror_assets.alerts.conditions import Condition, Kind, Value, cleaned
from mirror_assets.alerts.incidents import Event, Incident
from mirror_assets.config.alerts import Severity
from mirror_assets.errors import ErrorCode

_NAMED, _LONGEST_TITLE = 10, 250
_IN_LINKS = "/?=&%:@~+,;!$()*"
_NOUNS = {Kind.RUN: "jobs", Kind.TICK: "sensors"}
_PREFIXES = {Event.WORSE: "Worse: ", Event.REMINDER: "Still: ", Event.ENDED: "Ended: "}
_CODES = frozenset(code.value for code in ErrorCode)


class Message(Value):
    """A message, for all receivers; `incident` is the same for all messages of one incident."""

    incident: str
    event: Event
    severity: Severity
    title: str
    body: str
    at_ms: int
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Pages:
    """Where links lead: the addresses of Dagster's UI and of the folder docs/, None where they are not set."""

    dagster: str | None = None
    docs: str | None = None

    def links(self, one: Condition) -> tuple[tuple[str, str], ...]:
        """Return the labels and addresses of its page in the UI, and of the docs on its error code or its check."""
        place = f"checks.md#{one.check}" if one.check else None
        if one.code in _CODES and one.kind is not Kind.CHECK:
            place = f"errors.md#{one.code}"
        pages = (
            ("Open in Dagster", self.dagster, one.page and quote(one.page, safe=_IN_LINKS)),
            ("What this means", self.docs, place),
        )
        return tuple((label, f"{root.rstrip('/')}/{page}") for label, root, page in pages if root and page)


def message_of(event: Event, incident: Incident, now_ms: int, pages: Pages) -> Message:
    """Return the message for the incident."""
    worst, is_over = incident.example, event is Event.ENDED
    subjects = sorted(incident.subjects if is_over else {one.subject for one in incident.members})
    who = subjects[0] if len(subjects) == 1 else f"{len(subjects)} {_NOUNS.get(worst.kind, 'tables')}"
    lines = [f"It was: {worst.text}" if is_over else worst.text]
    if len(subjects) > 1:
        more = f", and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
        lines.append(f"Which: {', '.join(subjects[:_NAMED])}{more}")
    if worst.next_step and not is_over:
        lines.append(f"Next: {worst.next_step}")
    if event is not Event.BEGUN:
        began = datetime.fromtimestamp(incident.began_ms / 1000, timezone.utc)
        hours, minutes = divmod((now_ms - incident.began_ms) // 60_000, 60)
        lines.append(f"Since: {began:%Y-%m-%d %H:%M} UTC ({hours} h {minutes} min)")
    links = pages.links(worst)
    lines += [f"{label}: {link}" for label, link in links]
    code = f", {worst.code}" if worst.code else ""
    return Message(
        incident=incident.id,
        event=event,
        severity=worst.severity,
        title=cleaned(f"{_PREFIXES.get(event, '')}{who}: {worst.what}", _LONGEST_TITLE),
        body="\n".join((*lines, f"Incident {incident.id}, {worst.severity.value}{code}")),
        at_ms=now_ms,
        links=links,
    )


def test_message(receiver: str, now_ms: int) -> Message:
    """Return the message of `mirror-assets alerts test`."""
    body = f"This is a test of the receiver {receiver}. Nothing is wrong."
    title, incident = "Test of mirror_assets", f"test-{now_ms}"
    return Message(incident=incident, event=Event.TEST, severity=Severity.INFO, title=title, body=body, at_ms=now_ms)
