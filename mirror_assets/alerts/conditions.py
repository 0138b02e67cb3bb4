"""A condition: one thing that is wrong now with one table, job, sensor or schedule."""

from __future__ import annotations

import hashlib
import re
from enum import Enum
from typing import Annotated

from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass

from mirror_assets.config.alerts import Severity
from mirror_assets.errors import NEXT, ErrorCode
from mirror_assets.redaction import redacted
from mirror_assets.row_values import without_values

_LONGEST = 1500
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
# What differs between subjects that have the same fault: names in code, ids, paths and numbers.
_VARYING = re.compile(r"\b[0-9a-f-]{12,}\b|(?<![\w:/])\.?/[^\s'\",;:)]+|\d[\d,._:]*|\s+", re.IGNORECASE)
_AUTHORITY = re.compile(r"\b([a-z][a-z0-9+.-]*://[^/\s'\",;)]+)", re.IGNORECASE)
# Beginnings of codes whose fault is in something that many tables need: a store, a catalog, Fabric, the Spark session.
_SHARED = re.compile(
    "store_|credential|certificate_|token_|item_|config_|source_unavailable|session_|spark_interrupted|run_killed|"
    "catalog_unavailable|catalog_refused|fabric_|mirroring_"
)
# Endings of codes after which the next run probably succeeds: only a second failure is reported.
_PASSING = re.compile(".*(_unavailable|_throttled|_busy|_interrupted|_not_staged|_killed|outcome_unknown)")


class ConditionKind(str, Enum):
    """The kinds of conditions."""

    CHECK = "check"
    TABLE = "table"
    HELD = "held"
    REBUILD = "rebuild"
    ZONE = "zone"
    PLACE = "place"
    RUN = "run"
    TICK = "tick"
    OVERDUE = "overdue"


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


@dataclass(frozen=True)
class Condition:
    """One thing that is wrong with one subject; texts are cleaned when it is made, because it is saved and sent.

    `id` names both and stays the same while it lasts. `subject` is a table, or the name of a job, sensor or schedule;
    `what` is a few words that follow it. `text` is the message, with the next step where MirrorError has it. `check` is
    the name of a check that failed. `page` is a path in Dagster's UI. `since_ms` is when a check or run recorded it, 0
    for what is read as it is now. `place` is the place of `discover` whose loss this is part of. A condition that
    `is_passing` keeps an open incident open, but starts none.
    """

    id: str
    kind: ConditionKind
    subject: str
    what: Shown
    text: Shown
    severity: Severity = Severity.ERROR
    code: str | None = None
    check: str | None = None
    page: str | None = None
    since_ms: int = 0
    is_passing: bool = False
    place: str | None = None

    @property
    def is_shared(self) -> bool:
        """Whether later conditions of its cause join an incident that was reported before, without a message."""
        return _SHARED.match(self.code or "") is not None or self.kind in (ConditionKind.REBUILD, ConditionKind.PLACE)

    @property
    def cause(self) -> str:
        """What conditions of one incident have in common.

        For a fault outside the table, that is the code and the store, account or server that the text names first. For
        the loss of a place, it is the place. For any other one, it is the code or the check, and the text without what
        differs between subjects. A slice that failed its checks is a cause of its own for each table.
        """
        if self.code == ErrorCode.CHECKS_FAILED.value:
            return f"{self.code} {self.subject}"
        if _SHARED.match(self.code or ""):
            place = _AUTHORITY.search(self.text)
            return f"{self.code} {place[1].lower() if place else 'here'}"
        if self.place is not None:
            return f"place {self.place}"
        names = "|".join(re.escape(name) for name in (self.subject, self.subject.rpartition(".")[2]) if name)
        text = _VARYING.sub(" ", re.sub(rf"(?<!\w)({names})(?!\w)", " ", self.text)).lower()
        return f"{self.code or self.check or self.what} {hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def follows_from(self, other: Condition) -> bool:
        """Return whether this is a consequence of another condition of the same subject."""
        if self.kind is ConditionKind.RUN:
            return other.kind in (ConditionKind.TABLE, ConditionKind.HELD)
        if self.kind is ConditionKind.OVERDUE:
            return other.kind in (ConditionKind.TICK, ConditionKind.RUN)
        if self.kind is ConditionKind.TABLE:
            return other.kind is ConditionKind.HELD
        if self.check == "retention":  # a rebuild reads none of the files that will be deleted
            return other.kind in (ConditionKind.HELD, ConditionKind.REBUILD)
        if self.check == "frames_safe":  # the mirror is one of those who need files
            return other.check == "retention" and self.severity.rank <= other.severity.rank
        return self.check == "lag" and other.kind in (ConditionKind.TABLE, ConditionKind.HELD, ConditionKind.REBUILD)


def with_next(text: str, next_step: str) -> str:
    """Return the text with the next step, unless it has one."""
    return text if NEXT in text else f"{text}{NEXT}{next_step}"


def may_pass(code: str | None) -> bool:
    """Return whether the next run probably succeeds after a failure with this code."""
    return _PASSING.fullmatch(code or "") is not None
