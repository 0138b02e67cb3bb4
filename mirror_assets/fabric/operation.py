"""Fabric's long-running operations: an answer that comes later, asked for by the operation's id.

By the id, and not at the address in Location: a token of ours goes nowhere but to the endpoint that is set.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

import pydantic
from azure.core.rest import HttpResponse

from mirror_assets.fabric.answers import Told, shown
from mirror_assets.fabric.errors import FabricRefused, FabricUnavailable

_LIMIT_SECONDS = 300.0
_PAUSE, _LONGEST_PAUSE = 2.0, 20.0
_RUNNING = frozenset({"NotStarted", "Running"})


class _Operation(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)

    status: str
    error: Told | None = None


def result_of(accepted: HttpResponse, what: str, get: Callable[[str], HttpResponse]) -> HttpResponse:
    """The answer that a 202 has promised; `get` asks for a path of the interface.

    Raises FabricRefused when the operation failed, and FabricUnavailable when it takes too long.
    """
    path = f"operations/{_id(accepted, what)}"
    deadline, answer = time.monotonic() + _LIMIT_SECONDS, accepted
    while time.monotonic() < deadline:
        time.sleep(_pause(answer))
        answer = get(path)
        operation = _Operation.model_validate_json(answer.text())
        if operation.status == "Succeeded":
            return get(f"{path}/result")
        if operation.status not in _RUNNING:
            told = operation.error or Told()
            raise FabricRefused(what, f"{told.errorCode or operation.status}: {shown(told.message)}", told.errorCode)
    raise FabricUnavailable(what, f"the operation is still running after {_LIMIT_SECONDS:.0f} s")


def _id(accepted: HttpResponse, what: str) -> UUID:
    try:
        return UUID(accepted.headers.get("x-ms-operation-id", ""))
    except ValueError:
        raise FabricRefused(what, "its answer names no operation to wait for") from None


def _pause(answer: HttpResponse) -> float:
    requested = answer.headers.get("Retry-After", "")
    return min(float(requested), _LONGEST_PAUSE) if requested.isdecimal() else _PAUSE
