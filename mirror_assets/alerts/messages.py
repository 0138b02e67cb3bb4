"""Messages: what a receiver is told of an incident, before it takes the form that this kind of receiver wants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from urllib.parse import quote

from mirror_assets.alerts.conditions import Condition, Value
from mirror_assets.alerts.incidents import Due, Incident, Told
from mirror_assets.alerts.texts import cleaned, shortened
from mirror_assets.config.alerts import Severity, Topic
from mirror_assets.errors import ErrorCode

SUBJECTS_NAMED = 10
_LONGEST_TITLE = 250
_IN_LINKS = "/?=&%:@~+,;!$()*"
_NOUNS = {Topic.RUN: "jobs", Topic.TICK: "sensors"}
_CODES = frozenset(code.value for code in ErrorCode)
PREFIXES = {Told.WORSE: "Worse: ", Told.REMINDER: "Still: ", Told.ENDED: "Ended: "}


class Message(Value):
    """What is told. Times are milliseconds since 1970.

    `id` is the same whenever the message is sent again; `incident` is the same for all messages of one incident.
    `subjects` names ten at most, and `more` is the number of the others.
    """

    id: str
    incident: str
    told: Told
    severity: Severity
    topic: Topic
    title: str
    text: str
    next_step: str
    code: str | None
    subjects: tuple[str, ...]
    more: int
    began_ms: int
    at_ms: int
    dagster_link: str | None = None
    docs_link: str | None = None

    @property
    def count(self) -> int:
        """The number of subjects."""
        return len(self.subjects) + self.more

    @property
    def named(self) -> str:
        """The subjects in one line."""
        return cleaned(", ".join(self.subjects)) + (f", and {self.more} more" if self.more else "")

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """The links that there are, each with the words that it is shown under."""
        both = (("Open in Dagster", self.dagster_link), ("What this means", self.docs_link))
        return tuple((words, link) for words, link in both if link)


@dataclass(frozen=True)
class Pages:
    """Where links lead: the addresses of Dagster's UI and of the folder docs/, None where nobody has said."""

    dagster: str | None = None
    docs: str | None = None

    def dagster_link(self, page: str | None) -> str | None:
        """Return the address of a page of the UI."""
        return f"{self.dagster.rstrip('/')}/{quote(page, safe=_IN_LINKS)}" if self.dagster and page else None

    def docs_link(self, code: str | None, check: str | None = None) -> str | None:
        """Return the address of the error code in docs/errors.md; where there is none, of the check in checks.md."""
        if self.docs and code in _CODES:
            return f"{self.docs.rstrip('/')}/errors.md#{code}"
        return f"{self.docs.rstrip('/')}/checks.md#{check}" if self.docs and check else None


def message_of(due: Due, now_ms: int, pages: Pages) -> Message:
    """Return the message that is due."""
    incident, told = due.incident, due.told
    worst, subjects = incident.example, _subjects(incident, told)
    return Message(
        id=f"{incident.id}/{told.value}" + (f"-{now_ms}" if told in (Told.WORSE, Told.REMINDER) else ""),
        incident=incident.id,
        told=told,
        severity=worst.severity,
        topic=incident.topic,
        title=shortened(cleaned(PREFIXES.get(told, "") + _title(subjects, worst)), _LONGEST_TITLE),
        text=shortened(("It was: " if told is Told.ENDED else "") + worst.text),
        next_step="" if told is Told.ENDED else worst.next_step,
        code=worst.code,
        subjects=subjects[:SUBJECTS_NAMED],
        more=max(0, len(subjects) - SUBJECTS_NAMED),
        began_ms=incident.began_ms,
        at_ms=now_ms,
        dagster_link=pages.dagster_link(worst.page),
        docs_link=pages.docs_link(worst.code, worst.check),
    )


def test_message(receiver: str, now_ms: int, pages: Pages) -> Message:
    """Return the message of `mirror-assets alerts test`."""
    return Message(
        id=f"test-{now_ms}",
        incident=f"test-{now_ms}",
        told=Told.TEST,
        severity=Severity.INFO,
        topic=Topic.TEST,
        title="Test of mirror_assets",
        text=f"This is a test of the receiver {receiver}. Nothing is wrong.",
        next_step="nothing: alerts arrive here.",
        code=None,
        subjects=(),
        more=0,
        began_ms=now_ms,
        at_ms=now_ms,
        dagster_link=pages.dagster_link("overview"),
    )


def shown_time(at_ms: int) -> str:
    """Return a time as people read it, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def shown_duration(milliseconds: int) -> str:
    """Return how long something took: `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    seconds = max(0, milliseconds) // 1000
    for unit, size, below, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{seconds // 60} min" if seconds >= 60 else f"{seconds} s"


def _subjects(incident: Incident, told: Told) -> tuple[str, ...]:
    """Return whom it is about: at its end all that it has had, else those that it has now."""
    now = tuple(dict.fromkeys(member.subject for member in incident.members))
    return tuple(sorted(incident.subjects if told is Told.ENDED or not now else now))


def _title(subjects: tuple[str, ...], worst: Condition) -> str:
    many = f"{len(subjects)} {_NOUNS.get(worst.topic, 'tables')}"
    return f"{subjects[0] if len(subjects) == 1 else many}: {worst.what}"
