"""Asks OneLake until it answers: what may pass is asked again up to a time limit, the rest becomes an error of ours.

The SDK's own retries are off: they ignore Retry-After, give up on 429, and report a request whose reply was lost, and
which worked, as a conflict (reference `onelake` §5). Here a conflict counts as an answer only if no earlier try of the
same request may have worked; else the outcome is unknown, and the protocol reads back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from azure.core.exceptions import AzureError

from mirror_assets.storage.errors import (
    ApiVersionRefused,
    CertificateRefused,
    ItemMissing,
    PathChanged,
    PathExists,
    PathMissing,
    RequestUnknown,
    StoreDenied,
    StoreRefused,
    StoreThrottled,
    StoreUnavailable,
    TokenRefused,
)
from mirror_assets.storage.onelake.answers import Answer, Meaning, answer_of
from mirror_assets.storage.onelake.patience import Patience, Waiting
from mirror_assets.storage.onelake.sdk_errors import raised_by_sdk

_Reply = TypeVar("_Reply")
# What the SDK raises, beside its own errors, over an answer that it can't read; the same from our own code is a bug.
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
_CONFLICTS = (Meaning.MISSING, Meaning.EXISTS, Meaning.CONDITION, Meaning.SOURCE_CHANGED)


class Requests:
    """Requests to one landing zone, which is at `root`."""

    def __init__(self, root: str, patience: Patience, api_version: str = "") -> None:
        self.root = root
        self._patience, self._api_version = patience, api_version

    def read(self, path: str, call: Callable[[], _Reply]) -> _Reply:
        """The answer to a request that changes nothing, or that can be repeated at will."""
        return self._ask(path, call, repeatable=True)

    def write(self, path: str, call: Callable[[], _Reply]) -> _Reply:
        """The answer to a request that takes effect at most once. Raises RequestUnknown when nobody can tell."""
        return self._ask(path, call, repeatable=False)

    def _ask(self, path: str, call: Callable[[], _Reply], *, repeatable: bool) -> _Reply:
        waiting, unsure = Waiting(self._patience), False
        while True:
            try:
                return call()
            except (AzureError, *_UNREADABLE) as error:
                if not isinstance(error, AzureError) and not raised_by_sdk(error):
                    raise
                answer, cause = answer_of(error), error
            if unsure and answer.meaning in _CONFLICTS:
                raise RequestUnknown(path, f"asked again, it was answered {answer.code}") from cause
            if not answer.is_passing:
                raise self._refusal(path, answer) from cause
            unsure = unsure or (answer.may_have_worked and not repeatable)
            if not waiting.goes_on(answer.retry_after):
                raise self._given_up(path, answer, waiting.seconds, unsure=unsure) from cause

    def _refusal(self, path: str, answer: Answer) -> Exception:
        errors = {
            Meaning.NO_ITEM: ItemMissing(self.root, answer.code),
            Meaning.NO_TOKEN: TokenRefused(self.root, answer.code),
            Meaning.UNTRUSTED: CertificateRefused(self.root, answer.code),
            Meaning.VERSION: ApiVersionRefused(self._api_version, answer.code),
            Meaning.MISSING: PathMissing(path),
            Meaning.EXISTS: PathExists(path),
            Meaning.CONDITION: PathChanged(path, "the one asked for"),
            Meaning.SOURCE_CHANGED: PathChanged(path, "the one asked for"),
            Meaning.DENIED: StoreDenied(f"{self.root}/{path}", answer.code),
        }
        return errors.get(answer.meaning) or StoreRefused(path, answer.code)

    @staticmethod
    def _given_up(path: str, answer: Answer, waited: float, *, unsure: bool) -> Exception:
        if unsure:
            return RequestUnknown(path, f"{answer.code}, again and again for {waited:.0f} s")
        if answer.meaning is Meaning.THROTTLED:
            return StoreThrottled(path, answer.code, waited)
        what = "no token: " if answer.meaning is Meaning.TOKEN_LATER else ""
        return StoreUnavailable(path, f"{what}{answer.code}, again and again for {waited:.0f} s")
