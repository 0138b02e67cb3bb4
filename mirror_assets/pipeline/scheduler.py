"""Runs the work of many tables round-robin, one slice of a table per turn."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, as_completed, wait
from contextlib import suppress
from dataclasses import dataclass, field

from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.many_tables import DaemonPool
from mirror_assets.telemetry.scope import table_scope

# A longer turn no longer counts: the table is large, or its store does not respond. Other tables need not wait.
_LONG_TURN_SECONDS = 30.0
_LONG_TURNS = 12
_TURN_SECONDS = 0.1
# To release a table is one request to its store.
_RELEASES_AT_ONCE = 16

TableWork = Generator[object, None, None]
"""A table's work: each step is a turn. It reports its own errors, and raises none."""
_END = object()


@dataclass
class _Turn:
    table: TableName
    work: TableWork
    began: float

    def take(self) -> bool:
        """Take the turn; return whether another one may follow."""
        with table_scope(str(self.table)):
            return next(self.work, _END) is not _END


@dataclass
class Scheduler:
    """Gives turns to tables in order: after its turn, a table goes to the end of the queue.

    `at_once` tables work at a time, plus up to 12 whose turns are long.
    """

    at_once: int
    _queue: deque[tuple[TableName, TableWork]] = field(default_factory=deque, init=False)
    _running: dict[Future[bool], _Turn] = field(default_factory=dict, init=False)
    _pool: DaemonPool = field(init=False)

    def __post_init__(self) -> None:
        """Start no thread yet."""
        self._pool = DaemonPool("mirror", self.at_once + _LONG_TURNS)

    @property
    def tables(self) -> frozenset[TableName]:
        """Return the tables whose work has not ended."""
        return frozenset([*(table for table, _ in self._queue), *(turn.table for turn in self._running.values())])

    @property
    def has_long_turns(self) -> bool:
        """Whether a turn has been running for more than 30 seconds."""
        return any(time.monotonic() - turn.began > _LONG_TURN_SECONDS for turn in self._running.values())

    def add(self, table: TableName, work: TableWork) -> None:
        """Put the work at the end of the queue; the table must have no other."""
        self._queue.append((table, work))

    def run_turns(self, seconds: float = _TURN_SECONDS) -> None:
        """Start turns as far as possible, then wait up to this many seconds until one of the running turns ends."""
        self._start_turns()
        ended, _ = wait(self._running, seconds, FIRST_COMPLETED)
        for future in ended:
            turn = self._running.pop(future)
            if future.result():
                self._queue.append((turn.table, turn.work))
        self._start_turns()

    def finish(self) -> None:
        """Run turns until all work has ended."""
        while self._queue or self._running:
            self.run_turns(_LONG_TURN_SECONDS)

    def stop(self, seconds: float | None) -> None:
        """End the work of queued tables at once; wait up to this many seconds (None: without limit) for running turns.

        A turn that does not end in time continues in its thread, as long as the process lives.
        """
        pool, ends = DaemonPool("release", _RELEASES_AT_ONCE), time.monotonic() + (seconds or 0.0)
        closed = [pool.submit(work.close) for _, work in self._queue]  # releases the table's lease
        self._queue.clear()
        with suppress(TimeoutError):
            closed.extend(
                pool.submit(self._running.pop(future).work.close)
                for future in as_completed(list(self._running), seconds)
            )
        wait(closed, None if seconds is None else max(0.0, ends - time.monotonic()))

    def _start_turns(self) -> None:
        now = time.monotonic()
        while self._queue:
            long = sum(now - turn.began > _LONG_TURN_SECONDS for turn in self._running.values())
            if len(self._running) - min(long, _LONG_TURNS) >= self.at_once:
                return
            turn = _Turn(*self._queue.popleft(), now)
            self._running[self._pool.submit(turn.take)] = turn
