"""A pool of daemon threads: a call that hangs blocks neither the end of the process nor the other calls."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

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
