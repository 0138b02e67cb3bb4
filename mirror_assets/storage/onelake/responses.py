"""The meaning of OneLake's answers: missing, exists, changed, refused, or retry (reference `onelake` §2 and §5)."""

from __future__ import annotations

import re
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
from azure.identity import CredentialUnavailableError

_THROTTLED = frozenset({429, 430})
_AGAIN = frozenset({408, 500, 502, 503, 504, *_THROTTLED})
_NO_SUCH_ITEM = frozenset(
    {"FilesystemNotFound", "ContainerNotFound", "ArtifactNotFound", "ItemNotFound", "WorkspaceNotFound"}
)
_CAPACITY = ("capacity", "paused", "throttl")
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
    DENIED = "denied"
    THROTTLED = "throttled"
    PASSING = "passing"
    REFUSED = "refused"


@dataclass(frozen=True)
class ErrorAnswer:
    """An answer other than success: its meaning, and the service's code, without anything secret."""

    meaning: Meaning
    code: str
    retry_after: float | None = None

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
    meaning = Meaning.VERSION if is_version else _meaning(status, code)
    return ErrorAnswer(meaning, f"{status} {code}".strip(), _retry_after(error))


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


def _meaning(status: int, code: str) -> Meaning:
    if status in _THROTTLED or (status in (403, 503) and any(word in code.lower() for word in _CAPACITY)):
        return Meaning.THROTTLED
    if status in _AGAIN or (status == 409 and code.endswith("BeingDeleted")):
        return Meaning.PASSING
    if code in _NO_SUCH_ITEM:
        return Meaning.NO_ITEM
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
