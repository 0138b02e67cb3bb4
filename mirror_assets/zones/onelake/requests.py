"""Retries requests to OneLake up to a time limit, and turns its refusals into our errors.

Neither the SDK nor tenacity does that: the SDK's retries ignore Retry-After, give up on 429, and report a request that
worked but whose reply was lost as a conflict (reference `onelake` §5). Here a conflict counts as an answer only if no
earlier try of the same request may have worked; else the outcome is unknown, and the protocol reads it back.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar
from urllib.parse import urlsplit

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.identity import CredentialUnavailableError

from mirror_assets.lakes.errors import CERTIFICATE_REFUSED, first_line, token_refused
from mirror_assets.lakes.store_faults import CAPACITY_PAUSED, GUIDS_NEEDED, ROLE_MISSING, StoreFault, fabric_fault
from mirror_assets.telemetry.record import count_request
from mirror_assets.zones.errors import (
    ADDRESS_REFUSED,
    API_VERSION_REFUSED,
    ITEM_MISSING,
    PATH_CHANGED,
    PATH_EXISTS,
    PATH_MISSING,
    REQUEST_UNKNOWN,
    STORE_DENIED,
    STORE_PAUSED,
    STORE_REFUSED,
    STORE_THROTTLED,
    STORE_UNAVAILABLE,
    PathMissing,
)

_THROTTLED = frozenset({429, 430})
_AGAIN = frozenset({408, 500, 502, 503, 504, *_THROTTLED})
_NO_SUCH_ITEM = frozenset(
    {"FilesystemNotFound", "ContainerNotFound", "ArtifactNotFound", "ItemNotFound", "WorkspaceNotFound"}
)
_CAPACITY = ("capacity", "throttl")
_CODE = re.compile(r"[A-Za-z0-9]{1,60}")
_NO_ANSWER = (ServiceRequestError, ServiceResponseError, IncompleteReadError)
# msal's message for a failure of the authority itself; azure-identity preserves neither status nor code.
_AUTHORITY_FAILED = re.compile(r"HTTP (Error|status): (408|429|5[0-9]{2})|temporarily_unavailable")
_UNTRUSTED = re.compile(r"certificate verify failed: ([^(\n]{1,200})")
_LONGEST_TEXT = 200


class Meaning(str, Enum):
    """The meaning of an answer for the code that sent the request."""

    MISSING = "missing"
    EXISTS = "exists"
    CONDITION = "condition not met"
    NO_ITEM = "no such item"
    NO_TOKEN = "no token"  # noqa: S105 a meaning
    TOKEN_LATER = "no token for now"  # noqa: S105 a meaning
    UNTRUSTED = "certificate not trusted"
    VERSION = "version not spoken"
    ADDRESS = "address not resolved"
    DENIED = "denied"
    PAUSED = "capacity paused"
    THROTTLED = "throttled"
    PASSING = "passing"
    REFUSED = "refused"


@dataclass(frozen=True)
class ErrorAnswer:
    """An answer other than success: its meaning, and the service's code, without anything secret.

    `said` is the first line of the service's message, if it has one.
    """

    meaning: Meaning
    code: str
    retry_after: float | None = None
    said: str = ""

    @property
    def fault(self) -> StoreFault | None:
        """The fault that the code, or the message, is a sign of; None if it is unknown."""
        return fabric_fault(f"{self.code} {self.said}")

    @property
    def quoted(self) -> str:
        """The code, and the service's message if there is one."""
        return f'{self.code}: "{self.said}"' if self.said else self.code

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.meaning in (Meaning.THROTTLED, Meaning.PASSING, Meaning.TOKEN_LATER)

    @property
    def may_have_worked(self) -> bool:
        """Whether the request may have taken effect; one that was throttled or had no token was never begun."""
        return self.meaning is Meaning.PASSING


def answer_of(error: Exception) -> ErrorAnswer:
    """Interpret an error of the SDK; one that is not Azure's comes from an answer that the SDK could not parse."""
    if not isinstance(error, AzureError):
        return ErrorAnswer(Meaning.PASSING, f"an answer that can't be read ({type(error).__name__})")
    untrusted = _UNTRUSTED.search(str(error))
    if untrusted:
        return ErrorAnswer(Meaning.UNTRUSTED, untrusted[1].strip(" ."))
    if isinstance(error, ClientAuthenticationError):
        return ErrorAnswer(_token_meaning(error), _code(error) or str(error).strip().partition("\n")[0][:_LONGEST_TEXT])
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return _service_answer(error, error.status_code)
    return ErrorAnswer(Meaning.PASSING, f"no answer ({type(error).__name__})")


def _service_answer(error: HttpResponseError, status: int) -> ErrorAnswer:
    """Interpret an answer of the service itself."""
    code = _code(error)
    if status < 300:  # the SDK's error for a success whose body is not JSON
        return ErrorAnswer(Meaning.PASSING, f"{status}, but an answer that can't be read")
    # The blob interface reports an x-ms-version that it does not support only in the text.
    names_version = code == "InvalidHeaderValue" and "x-ms-version" in str(error)
    is_version = status == 400 and (code == "UnsupportedRestVersion" or names_version)
    said = _said(error)
    meaning = Meaning.VERSION if is_version else _meaning(status, code, said)
    return ErrorAnswer(meaning, f"{status} {code}".strip(), _retry_after(error), said)


def _token_meaning(error: ClientAuthenticationError) -> Meaning:
    """Distinguish a refusal by the authority or the store from an authority that could not be reached."""
    if error.response is not None or isinstance(error, CredentialUnavailableError):
        return Meaning.NO_TOKEN
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, _NO_ANSWER) or _AUTHORITY_FAILED.search(str(cause)):
            return Meaning.TOKEN_LATER
        cause = cause.__cause__ or cause.__context__
    return Meaning.NO_TOKEN


def _meaning(status: int, code: str, said: str) -> Meaning:
    fault = fabric_fault(f"{status} {code} {said}")
    if fault is CAPACITY_PAUSED:
        return Meaning.PAUSED
    if status in _THROTTLED or (status in (403, 503) and any(word in code.lower() for word in _CAPACITY)):
        return Meaning.THROTTLED
    if status in _AGAIN or (status == 409 and code.endswith("BeingDeleted")):
        return Meaning.PASSING
    if code in _NO_SUCH_ITEM:
        return Meaning.NO_ITEM
    if fault is GUIDS_NEEDED:
        return Meaning.ADDRESS
    plain = {
        401: Meaning.NO_TOKEN,
        403: Meaning.DENIED,
        404: Meaning.MISSING,
        409: Meaning.EXISTS,
        412: Meaning.CONDITION,
    }
    return plain.get(status, Meaning.REFUSED)


def _code(error: HttpResponseError) -> str:
    """Return the service's error code: an attribute in the SDK's blob client, a header in the other client.

    Empty for a text that is not a code, so that a server can't choose the text of our messages and files.
    """
    known = getattr(error, "error_code", None)
    headers = getattr(error.response, "headers", None) or {}
    text = str(getattr(known, "value", known) or headers.get("x-ms-error-code", ""))
    return text if _CODE.fullmatch(text) else ""


def _said(error: HttpResponseError) -> str:
    """Return the first line of the service's message, without quotes and control characters; "" if it has none."""
    text = first_line(error.message or "").removeprefix(f"({_code(error)}) ")[:_LONGEST_TEXT]
    is_of_sdk = text.startswith("Operation returned an invalid status")
    return "" if is_of_sdk else "".join(char for char in text if char.isprintable() and char != '"')


def _retry_after(error: HttpResponseError) -> float | None:
    headers = getattr(error.response, "headers", None) or {}
    for name, seconds in (("Retry-After", 1.0), ("x-ms-retry-after-ms", 0.001)):
        try:
            return max(0.0, float(headers[name]) * seconds)
        except (KeyError, ValueError):
            continue
    return None


def raised_by_sdk(error: BaseException) -> bool:
    """Whether the SDK's code raised the error, or a library that it called, and not our code.

    For a truncated or garbled answer the SDK raises any error of its parsing: TypeError, KeyError, ValueError. Our own
    mistakes raise the same types, so only the traceback distinguishes them.
    """
    innermost, step = "", error.__traceback__
    while step is not None:
        package = str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        innermost = package if package in ("mirror_assets", "azure") else innermost
        step = step.tb_next
    return innermost == "azure"


_Reply = TypeVar("_Reply")
# The SDK also raises these for an unreadable answer; from our own code, they are bugs.
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
_CONFLICTS = (Meaning.MISSING, Meaning.EXISTS, Meaning.CONDITION)
# A request that succeeded shows for this long that the item exists.
_ITEM_SECONDS = 60.0


class Requests:
    """Sends requests to the landing zone at the URL `root`.

    A missing path means one of two things: the item lacks it, or the item was deleted. OneLake's answers may be equal,
    so `find_item` is sent to distinguish them, unless a request has succeeded recently. Paths that begin with `_`, such
    as leases, are often missing, so no such request follows.
    """

    def __init__(
        self, root: str, policy: RetryPolicy, api_version: str = "", find_item: Callable[[], object] | None = None
    ) -> None:
        self.root = root
        self._policy, self._api_version, self._find_item = policy, api_version, find_item
        self._succeeded: float | None = None

    def read(self, path: str, call: Callable[[], _Reply]) -> _Reply:
        """Return the answer to a request that can be repeated, because it changes nothing, or is idempotent."""
        return self._ask_item(path, call, repeatable=True)

    def write(self, path: str, call: Callable[[], _Reply]) -> _Reply:
        """Return the answer to a request that must take effect once. Raises UnknownOutcome if its effect is unknown."""
        return self._ask_item(path, call, repeatable=False)

    def _ask_item(self, path: str, call: Callable[[], _Reply], *, repeatable: bool) -> _Reply:
        try:
            reply = self._ask(path, call, repeatable=repeatable)
        except PathMissing:
            if not path.startswith("_"):
                self._require_item()
            raise
        self._succeeded = self._policy.clock()
        return reply

    def _require_item(self) -> None:
        """Raise ITEM_MISSING if the item doesn't exist."""
        now = self._policy.clock()
        if self._find_item is None or (self._succeeded is not None and now - self._succeeded < _ITEM_SECONDS):
            return
        try:
            self._ask("", self._find_item, repeatable=True)
        except PathMissing as error:
            raise ITEM_MISSING(root=self.root, code="404") from error
        self._succeeded = now

    def _ask(self, path: str, call: Callable[[], _Reply], *, repeatable: bool) -> _Reply:
        policy, began = self._policy, self._policy.clock()
        attempt, slept, unsure = 0, 0.0, False
        while True:
            try:
                return call()
            except (AzureError, *_UNREADABLE) as error:
                if not isinstance(error, AzureError) and not raised_by_sdk(error):
                    raise
                answer, cause = answer_of(error), error
            if getattr(cause, "response", None) is None:
                count_request(urlsplit(self.root).hostname or "", "any", "no answer")
            if unsure and answer.meaning in (*_CONFLICTS, Meaning.PAUSED):
                raise REQUEST_UNKNOWN(path=path, why=f"a retry was answered {answer.code}") from cause
            if not answer.is_passing:
                raise self._refusal(path, answer) from cause
            unsure = unsure or (answer.may_have_worked and not repeatable)
            waited = max(policy.clock() - began, slept)  # the clock may jump back
            pause = policy.pause(attempt, answer.retry_after)
            if waited + pause > policy.limit_seconds:
                raise self._timeout(path, answer, waited, unsure=unsure) from cause
            policy.sleep(pause)
            attempt, slept = attempt + 1, slept + pause

    def _refusal(self, path: str, answer: ErrorAnswer) -> Exception:
        errors = {
            Meaning.NO_ITEM: ITEM_MISSING(root=self.root, code=answer.code),
            Meaning.NO_TOKEN: token_refused(self.root, answer.code),
            Meaning.UNTRUSTED: CERTIFICATE_REFUSED(where=self.root, why=answer.code),
            Meaning.VERSION: API_VERSION_REFUSED(version=self._api_version, why=answer.code),
            Meaning.MISSING: PATH_MISSING(path=path),
            Meaning.EXISTS: PATH_EXISTS(path=path),
            Meaning.CONDITION: PATH_CHANGED(path=path, wanted="the requested one", found="unknown"),
            Meaning.ADDRESS: ADDRESS_REFUSED(root=self.root, code=answer.code),
            Meaning.PAUSED: STORE_PAUSED(root=self.root, code=answer.code),
            Meaning.DENIED: self._denial(path, answer),
        }
        return errors.get(answer.meaning) or STORE_REFUSED(path=path, answer=answer.quoted)

    def _denial(self, path: str, answer: ErrorAnswer) -> Exception:
        """Return STORE_DENIED: of the landing zone for a known code, which concerns every path, else of the path."""
        if answer.fault is not None:
            why = f"OneLake {answer.fault.says} ({answer.code})"
            return STORE_DENIED(path=self.root, why=why, next_step=answer.fault.next_step)
        why = f"OneLake answers {answer.quoted}"
        step = f"{ROLE_MISSING.next_step} If both are right, check the workspace's rules for inbound networking."
        return STORE_DENIED(path=f"{self.root}/{path}", why=why, next_step=step)

    @staticmethod
    def _timeout(path: str, answer: ErrorAnswer, waited: float, *, unsure: bool) -> Exception:
        if unsure:
            return REQUEST_UNKNOWN(path=path, why=f"{answer.code}, repeatedly for {waited:.0f} s")
        if answer.meaning is Meaning.THROTTLED:
            return STORE_THROTTLED(path=path, why=answer.code, seconds=waited)
        what = "no token: " if answer.meaning is Meaning.TOKEN_LATER else ""
        return STORE_UNAVAILABLE(path=path, why=f"{what}{answer.code}, repeatedly for {waited:.0f} s")


_DOUBLINGS = 30  # more would overflow a float, and no longest pause needs more


@dataclass(frozen=True)
class RetryPolicy:
    """A time limit for one request with all its retries, and pauses that double, with jitter.

    A Retry-After is respected in full, so that many publishers do not return too early.
    """

    limit_seconds: float = 120.0
    first_pause: float = 0.5
    longest_pause: float = 20.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def pause(self, attempt: int, retry_after: float | None) -> float:
        """Return the seconds to wait after a failed attempt, counted from 0; `retry_after` is the service's."""
        doubled: float = min(self.longest_pause, self.first_pause * 2 ** min(attempt, _DOUBLINGS))
        jittered = doubled * (0.5 + self.jitter() / 2)
        return jittered if retry_after is None else retry_after + jittered * 0.1
