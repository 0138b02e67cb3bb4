"""A condition: one thing that is wrong now with one table, job, sensor or schedule."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated

import pydantic
from pydantic import BeforeValidator

from mirror_assets.config.alerts import Severity
from mirror_assets.errors import ErrorCode
from mirror_assets.redaction import redacted
from mirror_assets.row_values import without_values

_LONGEST = 1500
_NEXT = " Next: "
# Control characters except line breaks, characters that change the direction of text, and halves of a character, which
# JSON can't hold: file names may.
_UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]")
# Passwords in addresses, signatures of Azure Storage, S3 and Google Cloud Storage, and partition values in paths.
_PRIVATE = (
    re.compile(r"(://[^\s:/@'\"]*:)[^\s/@'\"]+(@)"),
    re.compile(r"([?&](?:sig|x-(?:amz|goog)-(?:signature|credential|security-token))=)[^\s&'\"]+()", re.IGNORECASE),
    re.compile(r"(\b[\w%.~-]+=)[^/\n,;:()\[\]'\"«»?&]+(/)"),
    re.compile(r"(/[\w%.~-]+=)[^\s/,;:()'\"]+()"),
)
_AUTHORITY = re.compile(r"\b([a-z][a-z0-9+.-]*://[^/\s'\",;)]+)", re.IGNORECASE)
# Beginnings of codes whose fault is in something that many tables need: a store, a catalog, Fabric, the Spark session.
_SHARED = re.compile(
    "store_|credential|certificate_|token_|item_|api_version_|config_|source_unavailable|session_|spark_interrupted|"
    "run_killed|catalog_unavailable|catalog_denied|catalog_refused|fabric_|mirroring_"
)
# Endings of codes after which the next run probably succeeds: only a second failure is reported.
_PASSING = re.compile(
    ".*(_unavailable|_throttled|_busy|_interrupted|_running|_not_staged|_killed|_dropped|lost_race|outcome_unknown|"
    "fabric_not_ready)"
)


class Kind(str, Enum):
    """The kinds of conditions."""

    CHECK = "check"
    TABLE = "table"
    HELD = "held"
    REBUILD = "rebuild"
    ZONE = "zone"
    RUN = "run"
    TICK = "tick"
    OVERDUE = "overdue"


class Value(pydantic.BaseModel):
    """A value of alerts that is saved in Dagster's storage as JSON."""

    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")


def cleaned(text: str, longest: int = _LONGEST) -> str:
    """Return the text as it may leave the project: without secrets, values of rows and control characters, and short.

    A text that is cut ends in `…`.
    """
    text = without_values(redacted(text))
    for pattern in _PRIVATE:
        text = pattern.sub(r"\1…\2", text)
    text = _UNFIT.sub(lambda found: " " if found[0] in "\t\u2028\u2029" else "", text)
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


Shown = Annotated[str, BeforeValidator(cleaned)]


class Condition(Value):
    """One thing that is wrong with one subject; texts are cleaned when it is made, because it is saved and sent.

    `id` names both and stays the same while it lasts. `subject` is a table, or the name of a job, sensor or schedule;
    `what` is a few words that follow it. `text` is the message of an error, whose next step takes the place of
    `next_step`. `check` is the name of a check that failed. `page` is a path in Dagster's UI. `since_ms` is when the
    failure was recorded. A condition that `is_passing` keeps an open incident open, but starts none.
    """

    id: str
    kind: Kind
    subject: str
    what: Shown
    text: Shown
    next_step: Shown = ""
    severity: Severity = Severity.ERROR
    code: str | None = None
    check: str | None = None
    page: str | None = None
    since_ms: int = 0
    is_passing: bool = False

    @pydantic.model_validator(mode="before")
    @classmethod
    def _split_next_step(cls, data: dict[str, object]) -> dict[str, object]:
        text, found, next_step = str(data["text"]).partition(_NEXT)
        return {**data, "text": text.strip(), "next_step": next_step.strip()} if found else data

    @property
    def is_shared(self) -> bool:
        """Whether later conditions of its cause join an incident that was reported before, without a message."""
        is_outside = _SHARED.match(self.code or "") is not None
        return is_outside or self.kind is Kind.REBUILD or self.code == ErrorCode.CHECKS_FAILED.value

    @property
    def cause(self) -> str:
        """What conditions of one incident have in common.

        For a fault outside the table, that is the code and the store, account or server that the text names first. A
        slice that failed its checks is a cause of its own for each table.
        """
        if self.code == ErrorCode.CHECKS_FAILED.value:
            return f"{self.code} {self.subject}"
        if _SHARED.match(self.code or ""):
            place = _AUTHORITY.search(self.text)
            return f"{self.code} {place[1].lower() if place else 'here'}"
        return self.code or self.check or f"{self.kind.value} {self.what}"

    def follows_from(self, other: Condition) -> bool:
        """Return whether this is a consequence of another condition of the same subject."""
        if self.kind is Kind.RUN:
            return other.kind in (Kind.TABLE, Kind.HELD)
        if self.kind is Kind.OVERDUE:
            return other.kind in (Kind.TICK, Kind.RUN)
        if self.kind is Kind.TABLE:
            return other.kind is Kind.HELD
        return self.check == "lag" and other.kind in (Kind.TABLE, Kind.HELD, Kind.REBUILD)


def may_pass(code: str | None) -> bool:
    """Return whether the next run probably succeeds after a failure with this code."""
    return _PASSING.fullmatch(code or "") is not None
