"""How long a request is asked again, and how long we wait in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

_DOUBLINGS = 30  # more would be too large a number, and no longest pause is that long


@dataclass(frozen=True)
class Patience:
    """A time limit for one request with all its repetitions, and pauses that double, with jitter.

    What the service asks for in Retry-After is waited in full, so that many publishers do not come back too early.
    """

    limit_seconds: float = 120.0
    first_pause: float = 0.5
    longest_pause: float = 20.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def pause(self, attempt: int, requested: float | None) -> float:
        """Seconds to wait after the failed attempt, counted from 0; `asked` is the service's Retry-After."""
        doubled: float = min(self.longest_pause, self.first_pause * 2 ** min(attempt, _DOUBLINGS))
        jittered = doubled * (0.5 + self.jitter() / 2)
        return jittered if requested is None else requested + jittered * 0.1


class Waiting:
    """The waiting for one request, from its first try on."""

    def __init__(self, patience: Patience) -> None:
        self._patience, self._began = patience, patience.clock()
        self._attempts, self._slept = 0, 0.0

    @property
    def seconds(self) -> float:
        """How long it has lasted: at least the pauses, should the clock jump back."""
        return max(self._patience.clock() - self._began, self._slept)

    def goes_on(self, requested: float | None) -> bool:
        """Wait before another try; False, without waiting, if that would pass the limit."""
        pause = self._patience.pause(self._attempts, requested)
        if self.seconds + pause > self._patience.limit_seconds:
            return False
        self._patience.sleep(pause)
        self._attempts, self._slept = self._attempts + 1, self._slept + pause
        return True
