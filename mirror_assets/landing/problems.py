"""`_alerts/state.json`: the failing checks of all tables, what receivers were sent of them, and muted tables.

Several evaluators write it by compare-and-swap: runs in one or more Dagster instances (docs/landing-folder.md).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from enum import Enum
from typing import Literal, NamedTuple

from pydantic import Field

from mirror_assets.landing.errors import PROBLEMS_BUSY
from mirror_assets.landing.format import Count, Record
from mirror_assets.landing.names import PROBLEMS
from mirror_assets.landing.steps import ControlFile, drive, read_control_file, write_control_file
from mirror_assets.zones import Store

_TRIES = 20


class Severity(str, Enum):
    """How severe a problem is, from the least to the most."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """A number that grows with the severity."""
        return list(Severity).index(self)


class MessageKind(str, Enum):
    """Why a message is sent."""

    BEGUN = "begun"
    WORSE = "worse"
    REMINDER = "reminder"
    ENDED = "ended"
    TEST = "test"


class ProblemKey(NamedTuple):
    """What is evaluated: a check of a table's kind of asset, or of another subject, which has no asset."""

    subject: str
    asset: str
    check: str


class Sent(Record):
    """The newest message about a problem that a receiver has accepted. The time is in ms since 1970."""

    kind: MessageKind
    severity: Severity
    at_ms: int


class StoredProblem(Record):
    """A check of a subject (a table, a place of `discover`, a job, the landing zone) that fails, or has failed.

    `what` is a few words that follow the subject. `cause` is equal for problems with one cause. `generation` is that of
    the file which has stored it last. It is open once it has an `incident`, whose problems share messages; before that,
    one evaluation has found it, at `first_ms`. `ended_ms` is when the check passed. `claimed_ms`: an evaluator sends a
    message about it since then. Texts are cleaned before they are stored.
    """

    subject: str
    asset: str = ""
    check: str
    severity: Severity
    what: str
    text: str
    next_step: str = ""
    code: str | None = None
    cause: str
    page: str | None = None
    owner: str
    generation: Count
    first_ms: int
    incident: str | None = None
    ended_ms: int | None = None
    claimed_ms: int | None = None
    sent: dict[str, Sent] = Field(default_factory=dict)

    @property
    def key(self) -> ProblemKey:
        """Its subject, kind of asset and check."""
        return ProblemKey(self.subject, self.asset, self.check)

    @property
    def is_open(self) -> bool:
        """Whether it is certain, and has not ended."""
        return self.incident is not None and self.ended_ms is None


class Mute(Record):
    """A subject about which no message is sent until a time, in ms since 1970."""

    subject: str
    until_ms: int
    reason: str = ""

    def __str__(self) -> str:
        """`sales.orders is muted until 2026-01-01 12:00 UTC (its source is moved)`."""
        until = f"{datetime.fromtimestamp(self.until_ms / 1000, timezone.utc):%Y-%m-%d %H:%M} UTC"
        return f"{self.subject} is muted until {until}" + (f" ({self.reason})" if self.reason else "")


class ProblemFile(Record):
    """The content of the file; `generation` grows by 1 with each change."""

    format: Literal[1] = 1
    generation: Count = 0
    problems: tuple[StoredProblem, ...] = ()
    mutes: tuple[Mute, ...] = ()

    def muted(self, subject: str, now_ms: int) -> Mute | None:
        """Return the mute of the subject that is in force, or None."""
        return next((one for one in self.mutes if one.subject == subject and now_ms < one.until_ms), None)

    def with_mute(self, mute: Mute, now_ms: int) -> ProblemFile:
        """Return the file with this mute of its subject, and without those that are over."""
        others = (one for one in self.mutes if one.subject != mute.subject)
        mutes = tuple(one for one in (*others, mute) if now_ms < one.until_ms)
        return self.model_copy(update={"mutes": mutes})


class ProblemStore:
    """The file in a landing zone."""

    def __init__(self, store: Store) -> None:
        """Read nothing yet."""
        self._store = store

    def read(self) -> ProblemFile:
        """Return the file; an empty one if it does not exist, or if it is damaged. Raises what the store raises."""
        return self._found().record or ProblemFile()

    def change(self, change: Callable[[ProblemFile], ProblemFile]) -> tuple[ProblemFile, ProblemFile]:
        """Replace the file by `change(file)`; return the file before and after it. An equal file is not written.

        `change` is called again if another process was faster. Raises RetryError if that happens too often, and what
        the store raises.
        """
        for _ in range(_TRIES):
            found = self._found()
            before = found.record or ProblemFile()
            after = change(before)
            if after == before:
                return before, before
            after = after.model_copy(update={"generation": before.generation + 1})
            if drive(write_control_file(found, after), self._store):
                return before, after
        raise PROBLEMS_BUSY(path=PROBLEMS, tries=_TRIES)

    def _found(self) -> ControlFile[ProblemFile]:
        return drive(read_control_file(ProblemFile, PROBLEMS, is_hint=True), self._store)
