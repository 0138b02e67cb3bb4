"""Says which run mirrors a batch of tables: a run takes over, renews, and ends when another has taken over."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from mirror_assets.errors import MirrorError
from mirror_assets.landing.runner import Runner, renew, take_over
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.table_lease import is_gone
from mirror_assets.storage import Store

_VALID_SECONDS = 30
_RENEWED_AFTER_SECONDS = 5.0
_Table = TypeVar("_Table")


def batch_of(tables: Sequence[_Table], number: int, batches: int) -> list[_Table]:
    """Return the tables of a batch, from 0: every n-th. So a table is in one batch only."""
    return list(tables[number::batches])


def is_alive(runner: Runner) -> bool:
    """Return whether the recorded run still mirrors its batch, as far as anybody can tell."""
    return not is_gone(runner.host, runner.pid, runner.until_ms)


@dataclass
class BatchRunner:
    """The calling run, as the one that mirrors a batch; `code` identifies the definitions that it was started for."""

    store: Store
    batch: int
    run: str
    code: str
    _since_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000, init=False)
    _renewed: float = field(default=0.0, init=False)
    _is_ours: bool = field(default=True, init=False)

    def take_over(self) -> None:
        """Take the place of any other run of the batch. A store that can't keep that fails nothing."""
        with suppress(MirrorError):
            drive(take_over(self._record()), self.store)
        self._renewed = time.monotonic()

    def is_replaced(self) -> bool:
        """Return whether another run has taken over; asks the store every few seconds only."""
        if self._is_ours and time.monotonic() >= self._renewed + _RENEWED_AFTER_SECONDS:
            with suppress(MirrorError):
                self._is_ours = drive(renew(self._record()), self.store)
            self._renewed = time.monotonic()
        return not self._is_ours

    def leave(self) -> None:
        """Say that this run has ended, unless another has taken over."""
        with suppress(MirrorError):
            drive(renew(self._record(valid_seconds=0)), self.store)

    def _record(self, valid_seconds: int = _VALID_SECONDS) -> Runner:
        return Runner(
            batch=self.batch,
            run=self.run,
            code=self.code,
            host=platform.node(),
            pid=os.getpid(),
            since_ms=self._since_ms,
            until_ms=time.time_ns() // 1_000_000 + valid_seconds * 1000,
        )
