"""Work on many tables that takes turns: one slice of one table after the other, several tables at a time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import partial

from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.daemon_pool import DaemonPool
from mirror_assets.telemetry.scope import table_scope

# A turn that takes longer no longer counts: the table is large, or its store does not answer. Others need not wait.
_LONG_TURN_SECONDS = 30.0
_LONG_TURNS = 12

Work = Generator[object, None, None]
"""A table's work: each step is a turn. It reports its own errors, and raises none."""
_END = object()


@dataclass
class _Turn:
    table: TableName
    work: Work
    began: float


@dataclass
class Turns:
    """Gives turns to tables, in order: who had a turn goes to the end of the queue. A table has one turn at a time.

    `at_once` tables work at a time, beside up to 12 whose turns are long.
    """

    at_once: int
    _queue: deque[tuple[TableName, Work]] = field(default_factory=deque, init=False)
    _running: dict[Future[bool], _Turn] = field(default_factory=dict, init=False)
    _pool: DaemonPool = field(init=False)

    def __post_init__(self) -> None:
        """Start no thread yet."""
        self._pool = DaemonPool("mirror", self.at_once + _LONG_TURNS)

    @property
    def tables(self) -> frozenset[TableName]:
        """Return the tables with work that is not at its end."""
        return frozenset([*(table for table, _ in self._queue), *(turn.table for turn in self._running.values())])

    def add(self, table: TableName, work: Work) -> None:
        """Put the work at the end of the queue; the table must have no other."""
        self._queue.append((table, work))

    def go_on(self, seconds: float) -> None:
        """Begin turns as there is room, then wait up to so many seconds until one ends, if any is under way."""
        self._begin()
        ended, _ = wait(self._running, seconds, FIRST_COMPLETED)
        for future in ended:
            turn = self._running.pop(future)
            if future.result():
                self._queue.append((turn.table, turn.work))
        self._begin()

    def finish(self) -> None:
        """Go on until all work is at its end."""
        while self._queue or self._running:
            self.go_on(_LONG_TURN_SECONDS)

    def stop(self, seconds: float | None) -> None:
        """Wait up to so many seconds, or as long as it takes, for the turns under way, and end all work there.

        A turn that does not end in time goes on in its thread, as long as the process lives.
        """
        ended, _ = wait(self._running, seconds)
        for future in ended:
            turn = self._running.pop(future)
            self._queue.append((turn.table, turn.work))
        for _, work in self._queue:
            work.close()  # it lets go of what it holds
        self._queue.clear()

    def _begin(self) -> None:
        now = time.monotonic()
        while self._queue and self._has_room(now):
            table, work = self._queue.popleft()
            future = self._pool.submit(partial(_step, table, work))
            self._running[future] = _Turn(table, work, now)

    def _has_room(self, now: float) -> bool:
        long = sum(now - turn.began > _LONG_TURN_SECONDS for turn in self._running.values())
        return len(self._running) - min(long, _LONG_TURNS) < self.at_once


def _step(table: TableName, work: Work) -> bool:
    """Take one turn; return whether there may be another."""
    with table_scope(str(table)):
        return next(work, _END) is not _END
