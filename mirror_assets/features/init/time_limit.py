"""Limits the time for which loading definitions waits for stores."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from math import inf
from typing import TypeVar

from mirror_assets.config.errors import NO_RESPONSE, request_failed
from mirror_assets.errors import MirrorError

_Result = TypeVar("_Result")


class TimeLimit:
    """The end of all requests together: `seconds` after its creation, or never for None."""

    def __init__(self, seconds: float | None) -> None:
        """Start the time."""
        self._end = None if seconds is None else time.monotonic() + seconds

    def call(self, what: str, request: Callable[[], _Result], *, at_most: float = inf, spare: float = 0.0) -> _Result:
        """Return the result of a request to `what`, which may take `at_most` seconds, and leaves `spare` of the limit.

        Raises MirrorError only: the request's own, request_failed for any other exception, and no_response. A request
        that takes longer continues in its thread, which doesn't keep the process alive.
        """
        done = Future[_Result]()
        if self._end is None:
            _complete(done, what, request)
            return done.result()
        threading.Thread(target=_complete, args=(done, what, request), name=f"request to {what}", daemon=True).start()
        if not wait([done], max(0.0, min(at_most, self._end - spare - time.monotonic()))).done:
            raise NO_RESPONSE(what=what)
        return done.result()


def _complete(done: Future[_Result], what: str, request: Callable[[], _Result]) -> None:
    try:
        done.set_result(request())
    except MirrorError as error:
        done.set_exception(error)
    except Exception as error:  # noqa: BLE001 definitions load whatever a store's SDK raises
        done.set_exception(request_failed(what, error))
