"""Advances the clock of a Python process by the seconds in the file CLOCK_FILE, again whenever they change.

Python imports it at the start of each process that has this folder in PYTHONPATH. Code that isn't Python, such as the
JVM, sees the real time. Monotonic clocks and timers don't change.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import time_machine

_EVERY_SECONDS = 0.5


class _Clock:
    """The clock of this process."""

    def __init__(self, file: Path) -> None:
        self._file, self._ahead = file, 0.0
        self._traveller = time_machine.travel(time.time(), tick=True).start()

    def update(self) -> None:
        ahead = float(self._file.read_text(encoding="utf-8"))
        if ahead != self._ahead:
            self._traveller.shift(ahead - self._ahead)
            self._ahead = ahead

    def follow(self) -> None:
        while True:
            time.sleep(_EVERY_SECONDS)
            self.update()


_clock = _Clock(Path(os.environ["CLOCK_FILE"]))
_clock.update()
threading.Thread(target=_clock.follow, daemon=True).start()
