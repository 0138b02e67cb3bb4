"""Records a run's events and log lines in Dagster, in order; they wait in memory while its storage doesn't respond."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial

import dagster as dg

from mirror_assets.errors import MirrorError
from mirror_assets.orchestration.dagster_internals import CheckError

_RETRY_SECONDS = 5.0
# An event of Dagster takes up to 20 KB.
_FULL = 2000
_END_SECONDS = 20.0
# Errors of an event itself: a retry would not help, and would keep all others waiting.
_DEFECTS = (MirrorError, dg.DagsterError, CheckError, AttributeError, LookupError, TypeError, ValueError)
_LOG = logging.getLogger(__name__)


def is_storage_fault(error: Exception) -> bool:
    """Return whether Dagster's storage may have failed: each database has errors of its own, without a common base."""
    return not isinstance(error, _DEFECTS)


@dataclass
class EventQueue:
    """Records events through calls of Dagster, several threads at once.

    With `keeps_events`, for a run that mirrors for hours, a call that fails because of Dagster's storage is retried
    every few seconds, and the calls after it wait. Otherwise its error is raised.
    """

    run_log: logging.Logger
    keeps_events: bool = False
    _calls: deque[Callable[[], object]] = field(default_factory=deque, init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)
    _retry_at: float = field(default=0.0, init=False)
    _waits_since: float | None = field(default=None, init=False)

    @property
    def is_waiting(self) -> bool:
        """Whether Dagster's storage has failed, and events wait."""
        return self._waits_since is not None

    def record(self, *calls: Callable[[], object]) -> None:
        """Make the calls, or queue them while others wait."""
        with self._lock:
            self._calls.extend(partial(copy_context().run, call) for call in calls)
            self._flush()

    def info(self, message: str) -> None:
        """Log a line."""
        self._write(logging.INFO, message)

    def warning(self, message: str) -> None:
        """Log a warning."""
        self._write(logging.WARNING, message)

    def error(self, message: str) -> None:
        """Log an error."""
        self._write(logging.ERROR, message)

    def flush(self) -> None:
        """Retry the calls that wait, if it is time."""
        with self._lock:
            self._flush()

    def wait_for_room(self, is_stopping: Callable[[], bool]) -> None:
        """Wait while the queue is full, so that no event is lost; give up when the run is stopping."""
        while len(self._calls) >= _FULL and not is_stopping():
            time.sleep(1.0)
            self.flush()

    def close(self) -> None:
        """Retry what waits for up to 20 seconds; log what can't be recorded at the end of the run."""
        deadline = time.monotonic() + _END_SECONDS
        while self._calls and time.monotonic() < deadline:
            self.flush()
            time.sleep(min(1.0, _RETRY_SECONDS) if self._calls else 0.0)
        if self._calls:
            _LOG.error(
                "the run ends while Dagster's storage does not respond: %d events and log lines are not recorded. The "
                "landing zone has all that has landed; Dagster does not show it.",
                len(self._calls),
            )

    def _write(self, level: int, message: str) -> None:
        if len(self._calls) < _FULL:
            self.record(partial(self.run_log.log, level, message))

    def _flush(self) -> None:
        while self._calls and time.monotonic() >= self._retry_at:
            try:
                self._calls[0]()
            except Exception as error:
                if not self.keeps_events:
                    self._calls.clear()
                    raise
                if is_storage_fault(error):
                    self._wait(error)
                    return
                _LOG.exception("an event can't be recorded in Dagster")
            self._calls.popleft()
        if self._waits_since is not None and not self._calls:
            seconds, self._waits_since = time.monotonic() - self._waits_since, None
            self.warning(f"Dagster's storage did not respond for {seconds:.0f} s: events were recorded later")

    def _wait(self, error: Exception) -> None:
        now = time.monotonic()
        self._retry_at = now + _RETRY_SECONDS
        if self._waits_since is None:
            self._waits_since = now
            _LOG.warning("Dagster's storage does not respond; mirroring continues, and events wait: %s", error)
