"""Messages: what a receiver gets for the problems of an incident, in plain text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import NamedTuple
from urllib.parse import quote

from mirror_assets.docs_links import check_link, error_link
from mirror_assets.features.alerts.alert_settings import AlertsConfig
from mirror_assets.landing.problems import MessageKind, Severity, StoredProblem

_NAMED, _LONGEST_TITLE = 10, 250
_IN_LINKS = "/?=&%:@~+,;!$()*"
_PREFIXES = {MessageKind.WORSE: "Worse: ", MessageKind.REMINDER: "Still: ", MessageKind.ENDED: "Ended: "}


class Message(NamedTuple):
    """A message; `incident` is the same for all messages of one incident, and `links` are labels and web addresses.

    `is_last`: no problem of the incident is left.
    """

    incident: str
    kind: MessageKind
    severity: Severity
    title: str
    body: str
    links: tuple[tuple[str, str], ...] = ()
    is_last: bool = False


def links(one: StoredProblem, settings: AlertsConfig) -> tuple[tuple[str, str], ...]:
    """Return its page in the UI, if that address is set, and the documentation of its error code or its check."""
    found = []
    if settings.dagster_url and one.page:
        found.append(("Open in Dagster", f"{settings.dagster_url.rstrip('/')}/{quote(one.page, safe=_IN_LINKS)}"))
    found.append(("What this means", error_link(one.code) if one.code else check_link(one.check)))
    return tuple(found)


def message_of(
    kind: MessageKind,
    problems: Sequence[StoredProblem],
    still_open: Sequence[StoredProblem],
    now_ms: int,
    settings: AlertsConfig,
) -> Message:
    """Return the message about problems of one incident; `still_open` are the incident's other open problems."""
    problems = sorted(problems, key=lambda one: (-one.severity.rank, one.first_ms, one.key))
    worst, subjects = problems[0], sorted({one.subject for one in problems})
    lines = _texts(kind, problems if len(subjects) == 1 else [worst])
    if len(subjects) > 1:
        rest = f", and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
        lines.append(f"Which: {', '.join(subjects[:_NAMED])}{rest}")
    if kind is not MessageKind.BEGUN:
        began_ms = min(one.first_ms for one in problems)
        began = datetime.fromtimestamp(began_ms / 1000, timezone.utc)
        hours, minutes = divmod(max(0, now_ms - began_ms) // 60_000, 60)
        lines.append(f"Since: {began:%Y-%m-%d %H:%M} UTC ({hours} h {minutes} min)")
    if still_open:
        names = sorted({f"{one.subject}: {one.what}" for one in still_open})
        lines.append(f"Still open: {'; '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''}")
    found, code = links(worst, settings), f", {worst.code}" if worst.code else ""
    lines += [f"{label}: {link}" for label, link in found]
    who = subjects[0] if len(subjects) == 1 else f"{len(subjects)} tables"
    more = f", and {len(problems) - 1} more" if len(subjects) == 1 and len(problems) > 1 else ""
    return Message(
        incident=worst.incident or "",
        kind=kind,
        severity=worst.severity,
        title=f"{_PREFIXES.get(kind, '')}{who}: {worst.what}{more}"[:_LONGEST_TITLE],
        body="\n".join((*lines, f"Incident {worst.incident}, {worst.severity.value}{code}")),
        links=tuple((label, link) for label, link in found if link.startswith("http")),
        is_last=kind is MessageKind.ENDED and not still_open,
    )


def _texts(kind: MessageKind, problems: Sequence[StoredProblem]) -> list[str]:
    """Return the text and the next step of each problem."""
    lines = list[str]()
    for one in problems:
        is_over, named = kind is MessageKind.ENDED, f"{one.what}: " if len(problems) > 1 else ""
        lines.append(f"It was: {named}{one.text}" if is_over else f"{named}{one.text}")
        if one.next_step and not is_over:
            lines.append(f"Next: {one.next_step}")
    return lines


def test_message(receiver: str, now_ms: int) -> Message:
    """Return the message of `mirror-assets alerts test`."""
    body = f"This is a test of the receiver {receiver}. Nothing is wrong."
    return Message(f"test-{now_ms}", MessageKind.TEST, Severity.INFO, "Test of mirror_assets", body, is_last=True)
