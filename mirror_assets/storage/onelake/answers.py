"""What OneLake's answers mean: missing, exists, changed, refused, or try again (reference `onelake` §2 and §5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from types import TracebackType

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.identity import CredentialUnavailableError

_THROTTLED = frozenset({429, 430})
_AGAIN = frozenset({408, 500, 502, 503, 504, *_THROTTLED})
_NO_SUCH_ITEM = frozenset({"FilesystemNotFound", "ContainerNotFound", "ItemNotFound", "WorkspaceNotFound"})
_CAPACITY = ("capacity", "paused", "throttl")
_CODE = re.compile(r"[A-Za-z0-9]{1,60}")
_NO_ANSWER = (ServiceRequestError, ServiceResponseError, IncompleteReadError)
# How msal writes that the authority itself failed; azure-identity keeps neither status nor code.
_AUTHORITY_FAILED = re.compile(r"HTTP (Error|status): (408|429|5[0-9]{2})|temporarily_unavailable")
_UNTRUSTED = re.compile(r"certificate verify failed: ([^(\n]{1,200})")
_LONGEST_TEXT = 200


class Meaning(str, Enum):
    """What a catcher can do about an answer."""

    MISSING = "missing"
    EXISTS = "exists"
    SOURCE_CHANGED = "source changed"
    CONDITION = "condition not met"
    NO_ITEM = "no such item"
    NO_TOKEN = "no token"  # noqa: S105 a meaning
    TOKEN_LATER = "no token for now"  # noqa: S105 a meaning
    UNTRUSTED = "certificate not trusted"
    VERSION = "version not spoken"
    DENIED = "denied"
    THROTTLED = "throttled"
    PASSING = "passing"
    REFUSED = "refused"


@dataclass(frozen=True)
class ErrorAnswer:
    """An answer other than success: what it means, and what the service said, without anything secret."""

    meaning: Meaning
    code: str
    retry_after: float | None = None

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.meaning in (Meaning.THROTTLED, Meaning.PASSING, Meaning.TOKEN_LATER)

    @property
    def may_have_worked(self) -> bool:
        """Whether the request may have taken effect all the same; one throttled or without a token was never begun."""
        return self.meaning is Meaning.PASSING


def answer_of(error: Exception) -> ErrorAnswer:
    """Interpret an error of the SDK; any that is not Azure's comes from an answer that the SDK could not parse."""
    if not isinstance(error, AzureError):
        return ErrorAnswer(Meaning.PASSING, f"an answer that can't be read ({type(error).__name__})")
    untrusted = _UNTRUSTED.search(str(error))
    if untrusted:
        return ErrorAnswer(Meaning.UNTRUSTED, untrusted[1].strip(" ."))
    if isinstance(error, ClientAuthenticationError):
        return ErrorAnswer(_token_meaning(error), _code(error) or _first_line(error))
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return _answered(error, error.status_code)
    return ErrorAnswer(Meaning.PASSING, f"no answer ({type(error).__name__})")


def _answered(error: HttpResponseError, status: int) -> ErrorAnswer:
    """What the service itself said."""
    code = _code(error)
    if status < 300:  # the SDK's word for a success whose body is no JSON
        return ErrorAnswer(Meaning.PASSING, f"{status}, but an answer that can't be read")
    meaning = Meaning.VERSION if status == 400 and _names_version(error, code) else _meaning(status, code)
    return ErrorAnswer(meaning, f"{status} {code}".strip(), _retry_after(error))


def _token_meaning(error: ClientAuthenticationError) -> Meaning:
    """Distinguish a refusal by the authority or the store from an authority that could not be reached."""
    if error.response is not None or isinstance(error, CredentialUnavailableError):
        return Meaning.NO_TOKEN
    failed = any(isinstance(cause, _NO_ANSWER) or _AUTHORITY_FAILED.search(str(cause)) for cause in _causes(error))
    return Meaning.TOKEN_LATER if failed else Meaning.NO_TOKEN


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _names_version(error: HttpResponseError, code: str) -> bool:
    """Whether the service does not support our x-ms-version; its blob half says so only in the text."""
    return code == "UnsupportedRestVersion" or (code == "InvalidHeaderValue" and "x-ms-version" in str(error))


def _meaning(status: int, code: str) -> Meaning:
    if status in _THROTTLED or (status in (403, 503) and any(word in code.lower() for word in _CAPACITY)):
        return Meaning.THROTTLED
    if status in _AGAIN or (status == 409 and code.endswith("BeingDeleted")):
        return Meaning.PASSING
    if code in _NO_SUCH_ITEM:
        return Meaning.NO_ITEM
    plain = {401: Meaning.NO_TOKEN, 403: Meaning.DENIED, 404: Meaning.MISSING, 409: Meaning.EXISTS}
    if status == 412:
        return Meaning.SOURCE_CHANGED if code == "SourceConditionNotMet" else Meaning.CONDITION
    return plain.get(status, Meaning.REFUSED)


def _code(error: HttpResponseError) -> str:
    """The service's error code: the SDK's blob half has it as an attribute, the other half leaves it in the headers.

    Empty for a text that is no code: what is shown to people and kept must not be the server's to choose.
    """
    known = getattr(error, "error_code", None)
    headers = getattr(error.response, "headers", None) or {}
    text = str(getattr(known, "value", known) or headers.get("x-ms-error-code", ""))
    return text if _CODE.fullmatch(text) else ""


def _retry_after(error: HttpResponseError) -> float | None:
    headers = getattr(error.response, "headers", None) or {}
    for name, seconds in (("Retry-After", 1.0), ("x-ms-retry-after-ms", 0.001)):
        try:
            return max(0.0, float(headers[name]) * seconds)
        except (KeyError, ValueError):
            continue
    return None


def _first_line(error: AzureError) -> str:
    return str(error).strip().partition("\n")[0][:_LONGEST_TEXT]


_OURS, _SDK = "mirror_assets", "azure"


def raised_by_sdk(error: BaseException) -> bool:
    """Whether the SDK's code raised the error, or a library that it called, and not our code.

    Over a truncated or garbled answer the SDK raises whatever its parsing happens to: TypeError, KeyError, ValueError.
    A mistake of ours raises the same types, so only the traceback distinguishes them.
    """
    innermost, step = "", error.__traceback__
    while step is not None:
        package = _package(step)
        innermost = package if package in (_OURS, _SDK) else innermost
        step = step.tb_next
    return innermost == _SDK


def _package(step: TracebackType) -> str:
    return str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
