"""How long a request is asked again, and how long we wait in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


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

    def pause(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after the failed attempt, counted from 0; `asked` is the service's Retry-After."""
        doubled: float = min(self.longest_pause, self.first_pause * 2**attempt)
        jittered = doubled * (0.5 + self.jitter() / 2)
        return jittered if asked is None else asked + jittered * 0.1
