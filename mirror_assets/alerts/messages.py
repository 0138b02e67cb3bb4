"""Messages: what a receiver gets for an incident, in plain text."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import NamedTuple
from urllib.parse import quote

from mirror_assets.alerts.conditions import Condition, ConditionKind, cleaned
from mirror_assets.alerts.incidents import Event, Incident
from mirror_assets.config.alerts import AlertsConfig, Severity
from mirror_assets.docs_links import check_link, error_link
from mirror_assets.errors import NEXT, ErrorCode

_NAMED, _LONGEST_TITLE = 10, 250
_IN_LINKS = "/?=&%:@~+,;!$()*"
_NOUNS = {ConditionKind.RUN: "jobs", ConditionKind.TICK: "sensors"}
_PREFIXES = {Event.WORSE: "Worse: ", Event.REMINDER: "Still: ", Event.ENDED: "Ended: "}
_CODES = frozenset(code.value for code in ErrorCode)


class Message(NamedTuple):
    """A message; `incident` is the same for all messages of one incident, and `links` are labels and web addresses."""

    incident: str
    event: Event
    severity: Severity
    title: str
    body: str
    links: tuple[tuple[str, str], ...] = ()


def links(one: Condition, settings: AlertsConfig) -> tuple[tuple[str, str], ...]:
    """Return its page in the UI, if that address is set, and the documentation of its error code or its check."""
    found = []
    if settings.dagster_url and one.page:
        found.append(("Open in Dagster", f"{settings.dagster_url.rstrip('/')}/{quote(one.page, safe=_IN_LINKS)}"))
    if one.code in _CODES and one.kind is not ConditionKind.CHECK:
        found.append(("What this means", error_link(one.code)))
    elif one.check:
        found.append(("What this means", check_link(one.check)))
    return tuple(found)


def message_of(event: Event, incident: Incident, now_ms: int, settings: AlertsConfig) -> Message:
    """Return the message for the incident."""
    worst, is_over = incident.example, event is Event.ENDED
    subjects = sorted(incident.subjects if is_over else {one.subject for one in incident.members})
    who = subjects[0] if len(subjects) == 1 else f"{len(subjects)} {_NOUNS.get(worst.kind, 'tables')}"
    text, _, next_step = worst.text.partition(NEXT)
    lines = [f"It was: {text}" if is_over else text]
    if len(subjects) > 1:
        more = f", and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
        lines.append(f"Which: {', '.join(subjects[:_NAMED])}{more}")
    if next_step and not is_over:
        lines.append(f"Next: {next_step}")
    if event is not Event.BEGUN:
        began = datetime.fromtimestamp(incident.began_ms / 1000, timezone.utc)
        hours, minutes = divmod((now_ms - incident.began_ms) // 60_000, 60)
        lines.append(f"Since: {began:%Y-%m-%d %H:%M} UTC ({hours} h {minutes} min)")
    found, code = links(worst, settings), f", {worst.code}" if worst.code else ""
    lines += [f"{label}: {link}" for label, link in found]
    body = "\n".join((*lines, f"Incident {incident.id}, {worst.severity.value}{code}"))
    title = cleaned(f"{_PREFIXES.get(event, '')}{who}: {worst.what}", _LONGEST_TITLE)
    addresses = tuple((label, link) for label, link in found if link.startswith("http"))
    return Message(incident.id, event, worst.severity, title, body, addresses)


def test_message(receiver: str, now_ms: int) -> Message:
    """Return the message of `mirror-assets alerts test`."""
    body = f"This is a test of the receiver {receiver}. Nothing is wrong."
    return Message(f"test-{now_ms}", Event.TEST, Severity.INFO, "Test of mirror_assets", body)
