"""Decides which faults have one cause: the same error code and the same place, or else the same message."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from mirror_assets.alerts.texts import without_credentials
from mirror_assets.errors import ErrorCode
from mirror_assets.row_values import without_values

# The fault is in something that many tables need: a store, a catalog, Fabric, the session.
_SHARED = frozenset(
    {
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.STORE_FULL,
        ErrorCode.STORE_DENIED,
        ErrorCode.STORE_THROTTLED,
        ErrorCode.STORE_REFUSED,
        ErrorCode.CREDENTIAL_INCOMPLETE,
        ErrorCode.CREDENTIAL_UNFIT,
        ErrorCode.CERTIFICATE_REFUSED,
        ErrorCode.TOKEN_REFUSED,
        ErrorCode.ITEM_MISSING,
        ErrorCode.API_VERSION_REFUSED,
        ErrorCode.CONFIG_INVALID,
        ErrorCode.SOURCE_UNAVAILABLE,
        ErrorCode.SESSION_UNFIT,
        ErrorCode.SPARK_INTERRUPTED,
        ErrorCode.RUN_KILLED,
        ErrorCode.CATALOG_UNAVAILABLE,
        ErrorCode.CATALOG_DENIED,
        ErrorCode.CATALOG_REFUSED,
        ErrorCode.CREDENTIALS_NOT_VENDED,
        ErrorCode.FABRIC_UNAVAILABLE,
        ErrorCode.FABRIC_NOT_READY,
        ErrorCode.FABRIC_DENIED,
        ErrorCode.FABRIC_ITEM_MISSING,
        ErrorCode.FABRIC_REFUSED,
        ErrorCode.MIRRORING_STOPPED,
    }
)
# Nothing is wrong yet: the next run does it. A person is told when it has failed again.
_TRANSIENT = frozenset(
    {
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.STORE_THROTTLED,
        ErrorCode.OUTCOME_UNKNOWN,
        ErrorCode.SOURCE_UNAVAILABLE,
        ErrorCode.CATALOG_UNAVAILABLE,
        ErrorCode.FABRIC_UNAVAILABLE,
        ErrorCode.FABRIC_NOT_READY,
        ErrorCode.SPARK_INTERRUPTED,
        ErrorCode.LOST_RACE,
        ErrorCode.TABLE_BUSY,
        ErrorCode.MIRROR_BUSY,
        ErrorCode.REBUILD_RUNNING,
        ErrorCode.TABLE_DROPPED,
        ErrorCode.SLICE_NOT_STAGED,
        ErrorCode.RUN_KILLED,
    }
)
_CODES = {code.value: code for code in ErrorCode}
_AUTHORITY = re.compile(r"\b([a-z][a-z0-9+.-]*://[^/\s'\",;)]+)", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w:/])(?:/|\./)[^\s'\",;:)]+")
_UNIQUE = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{12,}\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d,._:]*")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class Cause:
    """What a fault has in common with others; `joins` as in Condition."""

    key: str
    joins: bool


def cause_of(code: str | None, what: str, text: str, subject: str) -> Cause:
    """Return the cause of a fault of the subject.

    Of a code whose fault lies outside of a table, it is the code and the place: the store, account or server that the
    text names first. Of any other, it is the code, or `what` fails, and the text without the subject's name, numbers,
    paths, ids and values of rows.
    """
    text = without_credentials(without_values(text))
    if code is not None and _CODES.get(code) in _SHARED:
        place = _AUTHORITY.search(text)
        return Cause(f"{code} {place[1].lower() if place else 'here'}", joins=True)
    return Cause(f"{code or what} {_digest(_common(text, subject))}", joins=False)


def is_transient(code: str | None) -> bool:
    """Return whether a first failure with this code says nothing yet."""
    return code is not None and _CODES.get(code) in _TRANSIENT


def _common(text: str, subject: str) -> str:
    """Return the text without what differs between subjects that have the same fault."""
    bare = subject.rpartition(".")[2]
    for name in dict.fromkeys((subject, subject.replace(".", "/"), bare)):
        if name:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "<subject>", text)
    for pattern, sign in ((_UNIQUE, "<id>"), (_PATH, "<path>"), (_NUMBER, "#")):
        text = pattern.sub(sign, text)
    return _SPACES.sub(" ", text).strip().lower()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def split_next(text: str) -> tuple[str, str]:
    """Return what has happened and the next step, as MirrorError joins them in its message."""
    what, _, next_step = text.partition(" Next: ")
    return what.strip(), next_step.strip()
