"""Retries requests to OneLake up to a time limit, and turns its refusals into our errors.

Neither the SDK nor tenacity does that: the SDK's retries ignore Retry-After, give up on 429, and report a request that
worked but whose reply was lost as a conflict (reference `onelake` §5). Here a conflict counts as an answer only if no
earlier try of the same request may have worked; else the outcome is unknown, and the protocol reads it back.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from azure.core.exceptions import AzureError

from mirror_assets.storage.errors import (
    API_VERSION_REFUSED,
    CERTIFICATE_REFUSED,
    ITEM_MISSING,
    PATH_CHANGED,
    PATH_EXISTS,
    PATH_MISSING,
    REQUEST_UNKNOWN,
    STORE_DENIED,
    STORE_REFUSED,
    STORE_THROTTLED,
    STORE_UNAVAILABLE,
    PathMissing,
    token_refused,
)
from mirror_assets.storage.onelake.responses import ErrorAnswer, Meaning, answer_of, raised_by_sdk
from mirror_assets.telemetry.record import count_request

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
        """Return the answer to a request that must take effect once. Raises RequestUnknown if its effect is unknown."""
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
        """Raise item_missing if the item doesn't exist."""
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
            if unsure and answer.meaning in _CONFLICTS:
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
            Meaning.DENIED: STORE_DENIED(path=f"{self.root}/{path}", why=answer.code),
        }
        return errors.get(answer.meaning) or STORE_REFUSED(path=path, answer=answer.code)

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
