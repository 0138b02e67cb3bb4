"""What OneLake's answers mean: gone, taken, changed, refused, or ask again (reference `onelake` §2 and §5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceResponseError,
)

_THROTTLED = frozenset({429, 430})
_AGAIN = frozenset({408, 500, 502, 503, 504, *_THROTTLED})
_NO_SUCH_ITEM = frozenset({"FilesystemNotFound", "ContainerNotFound", "ItemNotFound", "WorkspaceNotFound"})
_CAPACITY = ("capacity", "paused", "throttl")
_LONGEST_TEXT = 200


class Meaning(str, Enum):
    """What a catcher can do about an answer."""

    MISSING = "missing"
    EXISTS = "exists"
    SOURCE_CHANGED = "source changed"
    CONDITION = "condition not met"
    NO_ITEM = "no such item"
    NO_TOKEN = "no token"  # noqa: S105 a meaning
    DENIED = "denied"
    THROTTLED = "throttled"
    PASSING = "passing"
    REFUSED = "refused"


@dataclass(frozen=True)
class Answer:
    """An answer other than success: what it means, and what the service said, without anything secret."""

    meaning: Meaning
    code: str
    retry_after: float | None = None

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.meaning in (Meaning.THROTTLED, Meaning.PASSING)

    @property
    def may_have_worked(self) -> bool:
        """Whether the request may have taken effect all the same; a throttled one was never begun."""
        return self.meaning is Meaning.PASSING


def answer_of(error: AzureError) -> Answer:
    """What an SDK's error says."""
    if isinstance(error, ClientAuthenticationError):
        return Answer(Meaning.NO_TOKEN, _code(error) or _first_line(error))
    if isinstance(error, ServiceRequestError | ServiceResponseError | IncompleteReadError):
        return Answer(Meaning.PASSING, f"no answer ({type(error).__name__})")
    if not isinstance(error, HttpResponseError) or error.status_code is None:
        return Answer(Meaning.PASSING, type(error).__name__)
    return Answer(_meaning(error.status_code, _code(error)), f"{error.status_code} {_code(error)}", _retry_after(error))


def _meaning(status: int, code: str) -> Meaning:
    if status in _THROTTLED or (status in (403, 503) and any(word in code.lower() for word in _CAPACITY)):
        return Meaning.THROTTLED
    if status in _AGAIN:
        return Meaning.PASSING
    if code in _NO_SUCH_ITEM:
        return Meaning.NO_ITEM
    plain = {401: Meaning.NO_TOKEN, 403: Meaning.DENIED, 404: Meaning.MISSING, 409: Meaning.EXISTS}
    if status == 412:
        return Meaning.SOURCE_CHANGED if code == "SourceConditionNotMet" else Meaning.CONDITION
    return plain.get(status, Meaning.REFUSED)


def _code(error: HttpResponseError) -> str:
    """The service's error code: the SDK's blob half keeps it apart, the other half leaves it in the headers."""
    known = getattr(error, "error_code", None)
    if known:
        return str(getattr(known, "value", known))
    headers = getattr(error.response, "headers", None) or {}
    return str(headers.get("x-ms-error-code", ""))


def _retry_after(error: HttpResponseError) -> float | None:
    headers = getattr(error.response, "headers", None) or {}
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return None


def _first_line(error: AzureError) -> str:
    return str(error).strip().partition("\n")[0][:_LONGEST_TEXT]
