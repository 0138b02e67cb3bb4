"""Retries requests to OneLake up to a time limit, and turns its refusals into errors of ours.

By hand, not by the SDK or tenacity: the SDK's retries ignore Retry-After, give up on 429, and report a request that
worked but whose reply was lost as a conflict (reference `onelake` §5). Here a conflict counts as an answer only if no
earlier try of the same request may have worked; else the outcome is unknown, and the protocol reads back.
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
    PathChanged,
    PathExists,
    PathMissing,
    RequestUnknown,
    StoreDenied,
    StoreUnavailable,
    api_version_refused,
    certificate_refused,
    item_missing,
    store_refused,
    store_throttled,
    token_refused,
)
from mirror_assets.storage.onelake.answers import ErrorAnswer, Meaning, answer_of, raised_by_sdk
from mirror_assets.telemetry.record import count_request

_Reply = TypeVar("_Reply")
# What the SDK raises, beside its own errors, over an answer that it can't read; the same from our own code is a bug.
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
_CONFLICTS = (Meaning.MISSING, Meaning.EXISTS, Meaning.CONDITION, Meaning.SOURCE_CHANGED)


class Requests:
    """Makes requests to the landing zone at the URL `root`."""

    def __init__(self, root: str, policy: RetryPolicy, api_version: str = "") -> None:
        self.root = root
        self._policy, self._api_version = policy, api_version

    def read(self, path: str, call: Callable[[], _Reply]) -> _Reply:
        """Return the answer to a request that can be repeated: it changes nothing, or the same each time."""
        return self._ask(path, call, repeatable=True)

    def write(self, path: str, call: Callable[[], _Reply]) -> _Reply:
        """Return the answer to a request that must take effect once. Raises RequestUnknown when it may have, or not."""
        return self._ask(path, call, repeatable=False)

    def _ask(self, path: str, call: Callable[[], _Reply], *, repeatable: bool) -> _Reply:
        waiting, unsure = RetryTimer(self._policy), False
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
                raise RequestUnknown(path, f"asked again, it was answered {answer.code}") from cause
            if not answer.is_passing:
                raise self._refusal(path, answer) from cause
            unsure = unsure or (answer.may_have_worked and not repeatable)
            if not waiting.goes_on(answer.retry_after):
                raise self._given_up(path, answer, waiting.seconds, unsure=unsure) from cause

    def _refusal(self, path: str, answer: ErrorAnswer) -> Exception:
        errors = {
            Meaning.NO_ITEM: item_missing(self.root, answer.code),
            Meaning.NO_TOKEN: token_refused(self.root, answer.code),
            Meaning.UNTRUSTED: certificate_refused(self.root, answer.code),
            Meaning.VERSION: api_version_refused(self._api_version, answer.code),
            Meaning.MISSING: PathMissing(path),
            Meaning.EXISTS: PathExists(path),
            Meaning.CONDITION: PathChanged(path, "the one asked for"),
            Meaning.SOURCE_CHANGED: PathChanged(path, "the one asked for"),
            Meaning.DENIED: StoreDenied(f"{self.root}/{path}", answer.code),
        }
        return errors.get(answer.meaning) or store_refused(path, answer.code)

    @staticmethod
    def _given_up(path: str, answer: ErrorAnswer, waited: float, *, unsure: bool) -> Exception:
        if unsure:
            return RequestUnknown(path, f"{answer.code}, again and again for {waited:.0f} s")
        if answer.meaning is Meaning.THROTTLED:
            return store_throttled(path, answer.code, waited)
        what = "no token: " if answer.meaning is Meaning.TOKEN_LATER else ""
        return StoreUnavailable(path, f"{what}{answer.code}, again and again for {waited:.0f} s")


_DOUBLINGS = 30  # more would be too large a number, and no longest pause is that long


@dataclass(frozen=True)
class RetryPolicy:
    """A time limit for one request with all its retries, and pauses that double, with jitter.

    A Retry-After is waited in full, so that many publishers do not return too early.
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


class RetryTimer:
    """Times the retries of one request, from its first attempt on."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy, self._began = policy, policy.clock()
        self._attempts, self._slept = 0, 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the first attempt; at least the pauses, should the clock jump back."""
        return max(self._policy.clock() - self._began, self._slept)

    def goes_on(self, retry_after: float | None) -> bool:
        """Sleep before another attempt; return False, without sleeping, when that would pass the limit."""
        pause = self._policy.pause(self._attempts, retry_after)
        if self.seconds + pause > self._policy.limit_seconds:
            return False
        self._policy.sleep(pause)
        self._attempts, self._slept = self._attempts + 1, self._slept + pause
        return True
