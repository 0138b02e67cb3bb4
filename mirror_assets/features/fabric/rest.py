"""Retries, errors, paged lists and long-running operations of Fabric's REST API."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pydantic
from azure.core.exceptions import AzureError, ClientAuthenticationError, DeserializationError, HttpResponseError
from azure.core.paging import ItemPaged, PageIterator
from azure.core.pipeline import PipelineResponse
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest, HttpResponse

from mirror_assets.errors import MirrorError
from mirror_assets.features.fabric.errors import FABRIC_DENIED, FABRIC_ITEM_MISSING, FABRIC_REFUSED, FABRIC_UNAVAILABLE

_TRIES = 5
_SECONDS = 180
_LONGEST_RETRY_AFTER = 60.0


class FabricRetry(RetryPolicy[HttpRequest, HttpResponse]):
    """azure-core's retries, with a Retry-After of up to a minute; after a longer one, the request fails."""

    def __init__(self) -> None:
        super().__init__(retry_total=_TRIES, retry_status=_TRIES, timeout=_SECONDS)

    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        """Whether to retry: after a temporary failure whose Retry-After is short."""
        pause = self.get_retry_after(response) or 0.0
        return pause <= _LONGEST_RETRY_AFTER and super().is_retry(settings, response)


# A paused or overloaded capacity, whatever the HTTP status.
_CAPACITY = frozenset({"CapacityNotActive", "CapacityLimitExceeded"})
_DENIED, _MISSING, _PASSING = (401, 403), (404,), (408, 429, 430)
_SHOWN = 300


class FabricErrorBody(pydantic.BaseModel):
    """The body of an error response; some say whether a retry can succeed."""

    model_config = pydantic.ConfigDict(frozen=True)

    errorCode: str = ""  # noqa: N815 Fabric's spelling
    message: str = ""
    isRetriable: bool = False  # noqa: N815 Fabric's spelling


@contextmanager
def fabric_errors(what: str) -> Iterator[None]:
    """Translate the errors of a request in the block; `what` completes "Fabric refused to …"."""
    try:
        yield
    except HttpResponseError as error:
        raise _refusal(what, error) from error
    except AzureError as error:
        raise FABRIC_UNAVAILABLE(what=what, why=first_line(str(error))) from error
    except ValueError as error:  # an invalid response: of azure-core, of pydantic, or of a conversion
        raise FABRIC_REFUSED(what=what, why=f"its response can't be read ({first_line(str(error))})") from error


def first_line(text: str) -> str:
    """Return the first line of a text, at most 300 characters, without a full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:_SHOWN].rstrip(".") if lines else "no reason given"


def _refusal(what: str, error: HttpResponseError) -> MirrorError:
    if isinstance(error, ClientAuthenticationError) and error.response is None:
        return FABRIC_DENIED(what=what, why=first_line(str(error)))  # the credential got no token
    status, body = error.status_code or 0, _error_body(error)
    why = f"{body.errorCode or status}: {first_line(body.message or error.reason or '')}"
    if body.isRetriable or body.errorCode in _CAPACITY or status in _PASSING or status >= 500:
        return FABRIC_UNAVAILABLE(what=what, why=why)
    if status in _DENIED:
        return FABRIC_DENIED(what=what, why=why)
    if status in _MISSING:
        return FABRIC_ITEM_MISSING(what=what, why=why)
    return FABRIC_REFUSED(what=what, why=why, answer=body.errorCode)


def _error_body(error: HttpResponseError) -> FabricErrorBody:
    try:
        return FabricErrorBody.model_validate_json(error.response.text() if error.response else "")
    except (pydantic.ValidationError, ValueError):
        return FabricErrorBody()


_TOKEN = "continuationToken"  # noqa: S105 a parameter's name
_Item = TypeVar("_Item")


def all_pages(ask: Callable[[str | None], ItemPaged[_Item]]) -> list[_Item]:
    """Return the items of all pages; `ask` takes the continuation token of a page, None for the first.

    Fabric's client would request later pages with GET (the API is documented as POST), and send our access token to the
    address in the response. So each page is requested like the first.
    """
    found: list[_Item] = []
    token: str | None = None
    while True:
        pages = cast("PageIterator[_Item]", ask(token).by_page())
        found += next(pages)
        token = _next_token(pages.continuation_token, token)
        if token is None:
            return found


def _next_token(address: str | None, requested: str | None) -> str | None:
    """Return the token in the next page's address, or None after the last page."""
    if address is None:
        return None
    tokens = parse_qs(urlsplit(address).query).get(_TOKEN, [])
    if len(tokens) != 1 or tokens[0] == requested:
        raise DeserializationError("the address of its next page has no new token")
    return tokens[0]


_LIMIT_SECONDS = 300.0
_PAUSE, _LONGEST_PAUSE = 2.0, 20.0
_RUNNING = frozenset({"NotStarted", "Running"})


class _Operation(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)

    status: str
    error: FabricErrorBody | None = None


def operation_result(accepted: HttpResponse, what: str, get: Callable[[str], HttpResponse]) -> HttpResponse:
    """Wait for a long-running operation and return its result; `get` requests a path of the API.

    The operation is polled by its id, not at the address in Location, so that our access token goes only to the
    configured endpoint. Raises FabricRefused when it failed, and FabricUnavailable when it takes too long.
    """
    # Without tenacity, which would need callbacks for the pause, set by each response, and for both ends.
    try:
        path = f"operations/{UUID(accepted.headers.get('x-ms-operation-id', ''))}"
    except ValueError:
        raise FABRIC_REFUSED(what=what, why="its response names no operation") from None
    deadline, answer = time.monotonic() + _LIMIT_SECONDS, accepted
    while time.monotonic() < deadline:
        requested = answer.headers.get("Retry-After", "")
        time.sleep(min(float(requested), _LONGEST_PAUSE) if requested.isdecimal() else _PAUSE)
        answer = get(path)
        operation = _Operation.model_validate_json(answer.text())
        if operation.status == "Succeeded":
            return get(f"{path}/result")
        if operation.status not in _RUNNING:
            body = operation.error or FabricErrorBody()
            raise FABRIC_REFUSED(
                what=what,
                why=f"{body.errorCode or operation.status}: {first_line(body.message)}",
                answer=body.errorCode,
            )
    raise FABRIC_UNAVAILABLE(what=what, why=f"the operation is still running after {_LIMIT_SECONDS:.0f} s")
