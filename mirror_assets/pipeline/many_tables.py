"""Works on many tables while some stores do not respond: in daemon threads, and without repeated requests.

A request to a store that accepts connections and never responds takes half a minute to two minutes, and a table needs
several. With five hundred tables, one round would take hours.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import Code, ErrorCode, MirrorError, RetryError

_Result = TypeVar("_Result")


class DaemonPool:
    """Runs calls in up to `size` threads, first come, first served; `size` may grow while it works.

    The executors of `concurrent.futures` wait for their threads when the process ends, so a store that never answers
    would keep it alive.
    """

    def __init__(self, name: str, size: int) -> None:
        """Start no thread yet; threads are named `<name>-0` and so on."""
        self.size = size
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0

    def submit(self, call: Callable[[], _Result]) -> Future[_Result]:
        """Run the call in a free thread, or in a new one while there are fewer than `size`."""
        future: Future[_Result] = Future()
        with self._lock:
            self._calls.put(partial(_run, future, call))
            if self._free:
                self._free -= 1
            elif self._threads < self.size:
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
                self._threads += 1
        return future

    def _work(self) -> None:
        while True:
            self._calls.get()()
            with self._lock:
                # A waiting call is this thread's next; else the thread is free for a call to come.
                self._free += self._calls.empty()


def _run(future: Future[_Result], call: Callable[[], _Result]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 it is raised where the result is read
            future.set_exception(error)


# One request may be lost. This many recent ones mean that the store is unreachable.
_ENOUGH, _RECENT_SECONDS = 5, 600.0
_ZONE, _SOURCE = "the landing zone", "the source"
_SILENCES: dict[Code, str] = {
    ErrorCode.STORE_UNAVAILABLE: _ZONE,
    ErrorCode.STORE_THROTTLED: _ZONE,
    ErrorCode.SOURCE_UNAVAILABLE: _SOURCE,
    ErrorCode.CATALOG_UNAVAILABLE: _SOURCE,
}


def is_silence(error: MirrorError) -> bool:
    """Return whether a store did not respond, so that an immediate retry would wait again."""
    return error.code in _SILENCES


class SilentStores:
    """The stores that did not respond, during one round over many tables; threads may share it."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._unanswered: dict[str, list[tuple[float, RetryError]]] = {}

    @contextmanager
    def asking(self, table: TableSettings, *, zone: bool = True, source: bool) -> Iterator[None]:
        """Ask the landing zone in the block, the table's source, or both.

        Raises RetryError at once if one of them did not respond to several recent requests, of any tables.
        """
        began, address = time.monotonic(), urlsplit(table.source)
        # A folder of this machine is a store of its own.
        store = f"{address.scheme}://{address.netloc}" if address.netloc else table.source
        for place in [name for name, is_asked in ((_ZONE, zone), (store, source)) if is_asked]:
            with self._lock:
                unanswered = self._unanswered.get(place, [])
                recent = [error for at, error in unanswered if began - at < _RECENT_SECONDS]
            if len(recent) >= _ENOUGH:
                what = f"{place} did not respond to {_ENOUGH} requests, and was skipped for this table"
                raise RetryError(f"{what}: {recent[0].what}", recent[0].next_step, code=recent[0].code)
        try:
            yield
        except RetryError as error:
            if is_silence(error):
                place = _ZONE if _SILENCES[error.code] == _ZONE else store
                with self._lock:
                    self._unanswered.setdefault(place, []).append((began, error))
            raise
