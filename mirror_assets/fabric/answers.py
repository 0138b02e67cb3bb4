"""Turns what azure-core raises into our errors; what Fabric's answers say is looked at as untrusted text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pydantic
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

from mirror_assets.errors import MirrorError
from mirror_assets.fabric.errors import FabricDenied, FabricItemMissing, FabricRefused, FabricUnavailable

# A paused or overloaded capacity, whatever the status that it is told with.
_CAPACITY = frozenset({"CapacityNotActive", "CapacityLimitExceeded"})
_DENIED, _MISSING, _PASSING = (401, 403), (404,), (408, 429, 430)
_SHOWN = 300


class Told(pydantic.BaseModel):
    """The body of a refusal: `errorCode` names it, and some say whether to try again."""

    model_config = pydantic.ConfigDict(frozen=True)

    errorCode: str = ""  # noqa: N815 Fabric's spelling
    message: str = ""
    isRetriable: bool = False  # noqa: N815 Fabric's spelling


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Raise our errors for what a request inside raises; `what` completes "Fabric refused to …"."""
    try:
        yield
    except HttpResponseError as error:
        raise _refusal(what, error) from error
    except AzureError as error:
        raise FabricUnavailable(what, shown(str(error))) from error
    except ValueError as error:  # of azure-core, of pydantic, or of a type that a text should have been
        raise FabricRefused(what, f"its answer can't be read ({shown(str(error))})") from error


def shown(text: str) -> str:
    """The first line of a text from outside, not too long, without the stop that our sentences bring."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:_SHOWN].rstrip(".") if lines else "no reason given"


def _refusal(what: str, error: HttpResponseError) -> MirrorError:
    if isinstance(error, ClientAuthenticationError) and error.response is None:
        return FabricDenied(what, shown(str(error)))  # the credential gave no token
    status, told = error.status_code or 0, _told(error)
    why = f"{told.errorCode or status}: {shown(told.message or error.reason or '')}"
    if told.isRetriable or told.errorCode in _CAPACITY or status in _PASSING or status >= 500:
        return FabricUnavailable(what, why)
    if status in _DENIED:
        return FabricDenied(what, why)
    if status in _MISSING:
        return FabricItemMissing(what, why)
    return FabricRefused(what, why, told.errorCode)


def _told(error: HttpResponseError) -> Told:
    try:
        return Told.model_validate_json(error.response.text() if error.response else "")
    except (pydantic.ValidationError, ValueError):
        return Told()
