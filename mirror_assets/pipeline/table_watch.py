"""Polls many tables: which need work now? A quiet table costs one request for its next commit.

All state here is a cache: a complete poll reads log, landing zone and recorded failures.
"""

from __future__ import annotations

import queue
import random
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from mirror_assets.errors import MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.lag import note_poll
from mirror_assets.pipeline.many_tables import DaemonPool
from mirror_assets.pipeline.next_action import Action, Land, QuietMark, Rebuild, Rest, is_quiet, next_action, pause_left
from mirror_assets.pipeline.plan import Boundaries, no_boundaries

# Polling may take this share of one core; a large lake is polled less often than configured. Complete polls don't
# count: they follow work, and would delay the next poll.
_SHARE_OF_A_CORE = 0.02
# A table at rest on a disk of this machine is polled more often: it costs 18 microseconds and no request. After work it
# waits for the next round, so that commits in quick succession share a file as before. A longer interval than the
# default is a wish for fewer files.
_DISK_SECONDS, _DISK_SHARE = 0.5, 0.002
_DEFAULT_SECONDS = 2.0
_IDLE_SECONDS = 0.5
# Polls mostly wait for a store.
_POLLS_AT_ONCE = 16
# Quiet tables answer within microseconds. To wake the waiting thread for each takes longer than their polls.
_BURST_SECONDS = 0.005
# The log shows new commits; changes that people make in the landing zone may be detected later.
_ZONE_SECONDS = 60.0
_COMPLETE_SECONDS = 3600.0
# A poll that takes longer hangs: the others don't wait for it.
_PATIENCE_SECONDS = 30.0
# A table that can't be polled, is on hold, or pauses after failures may be fixed at any time. It is polled again after
# this time, with exponential backoff: two hundred such tables must not cost hundreds of requests a second.
_FAILED_SECONDS, _LONGEST_FAILED_SECONDS = 15.0, 240.0


@dataclass(frozen=True)
class PollResult:
    """The result of polling a table: the action that it needs, or the error that prevents one.

    `is_complete`: the table was planned; else only the mark of an earlier poll was compared. `cpu_seconds` is the CPU
    time of this process for the poll, and `seconds` how long it took.
    """

    context: TableContext
    action: Action | MirrorError
    is_complete: bool
    cpu_seconds: float
    seconds: float = 0.0


@dataclass
class _PollState:
    """The state of a table's polls: `is_due` until its result is taken. Times are of `time.monotonic`.

    `unrecorded` counts failures of its work that the landing zone could not record, since the table was last well.
    """

    context: TableContext
    mark: QuietMark | None = None
    mark_ends: float = 0.0
    zone_polled: float = 0.0
    is_due: bool = False
    is_running: bool = False
    began: float = 0.0
    not_before: float = 0.0
    failures: int = 0
    unrecorded: int = 0


@dataclass
class TableWatch:
    """Polls tables in threads. A table whose store does not respond occupies its thread, and the others get another.

    `boundaries` return the last versions of a table's slices that are registered and have not landed; none for other
    tables. Unless `is_complete`, only new commits are detected, as in `next_action`.
    """

    contexts: Sequence[TableContext]
    boundaries: Mapping[TableName, Boundaries]
    is_complete: bool = True
    _states: dict[TableName, _PollState] = field(init=False)
    _due: deque[_PollState] = field(default_factory=deque, init=False)
    _polls: queue.SimpleQueue[PollResult] = field(default_factory=queue.SimpleQueue, init=False)
    _pool: DaemonPool = field(default_factory=lambda: DaemonPool("poll", _POLLS_AT_ONCE), init=False)

    def __post_init__(self) -> None:
        """Poll nothing yet."""
        self._states = {context.name: _PollState(context) for context in self.contexts}

    def begin(self, busy: Collection[TableName] = (), *, on_disk: bool = False) -> int:
        """Start to poll all tables except the busy ones, the longest waiting first; return how many.

        A table whose last poll still runs is left out, and so is one that failed, until its pause is over. With
        `on_disk`, only those at rest are polled whose log is on a disk of this machine.
        """
        now = time.monotonic()
        ready = [state for name, state in self._states.items() if name not in busy and state.not_before <= now]
        if on_disk:
            ready = [state for state in ready if state.mark is not None and state.context.log.is_on_disk]
        due = sorted((state for state in ready if not state.is_due), key=lambda state: state.began)
        self._pool.size = _POLLS_AT_ONCE + len(self.hanging)
        for state in due:
            state.began, state.is_due = now, True
        self._due.extend(due)
        self._pool.submit(self._poll_due)
        return len(due)

    @property
    def is_polling(self) -> bool:
        """Whether a poll is running that does not hang."""
        late = time.monotonic() - _PATIENCE_SECONDS
        return any(state.is_due and state.began > late for state in self._states.values())

    @property
    def hanging(self) -> tuple[TableName, ...]:
        """Return the tables whose source or landing zone has not responded for 30 s."""
        late = time.monotonic() - _PATIENCE_SECONDS
        return tuple(name for name, state in self._states.items() if state.is_running and state.began <= late)

    def polls(self, seconds: float = 0.0) -> list[PollResult]:
        """Return the polls that ended since the last call, after waiting up to this many seconds for the first.

        While tables are due, each call adds a thread that polls them. Where the stores answer at once, one thread is
        enough, and threads that wait for each other would take five times as long.
        """
        ended: list[PollResult] = []
        if self._due:
            self._pool.submit(self._poll_due)
        with suppress(queue.Empty):
            if seconds:
                ended.append(self._polls.get(timeout=seconds))
                time.sleep(_BURST_SECONDS)
            while True:
                ended.append(self._polls.get_nowait())
        for poll in ended:
            self._states[poll.context.name].is_due = False
        return ended

    def pause_unrecorded(self, table: TableName) -> None:
        """Leave the table alone after a failure that the landing zone could not record, as long as after a record."""
        state = self._states[table]
        state.unrecorded += 1
        state.not_before = time.monotonic() + pause_left(state.unrecorded, 0.0, 0.0)

    def cancel(self) -> None:
        """Cancel the polls that have not started; they come first next time."""
        with suppress(IndexError):
            while True:
                state = self._due.popleft()
                state.is_due, state.began = False, 0.0

    def _poll_due(self) -> None:
        """Poll one table after the other, until none is due."""
        while self._due:
            try:
                state = self._due.popleft()
            except IndexError:  # another thread was faster
                return
            state.is_running = True
            self._run(state)

    def _run(self, state: _PollState) -> None:
        began = time.thread_time()
        is_complete, action = self._action(state)
        if isinstance(action, MirrorError) or (isinstance(action, Rest) and action.pause):
            wait = min(_FAILED_SECONDS * 2**state.failures, _LONGEST_FAILED_SECONDS)
            state.not_before = time.monotonic() + (min(wait, action.pause) if isinstance(action, Rest) else wait)
            state.failures = min(state.failures + 1, 10)
        else:
            state.failures = 0
            state.unrecorded = state.unrecorded if isinstance(action, Land | Rebuild) else 0
        note_poll(state.context, action)
        state.is_running = False  # as soon as the result is taken, another thread may poll the table
        seconds = time.monotonic() - state.began
        self._polls.put(PollResult(state.context, action, is_complete, time.thread_time() - began, seconds))

    def _action(self, state: _PollState) -> tuple[bool, Action | MirrorError]:
        context, mark = state.context, state.mark
        try:
            if self._is_quiet(state):
                return False, Rest(f"{context.name}: nothing new", mark)
            state.mark = None
            boundaries = self.boundaries.get(context.name, no_boundaries)
            action = next_action(context, boundaries, time.time(), is_complete=self.is_complete)
        except MirrorError as error:
            if not isinstance(error, RetryError | UnknownOutcome):
                state.mark = None  # it was reported as failing: only a complete poll resolves that
            return True, error
        except Exception as error:  # noqa: BLE001 a failure on one table must not stop the polls of others
            state.mark = None
            return True, unexpected(str(context.name), error)
        now = time.monotonic()
        state.mark = action.mark if isinstance(action, Rest) else None
        # Complete polls of many tables are spread over time.
        state.mark_ends = now + _COMPLETE_SECONDS * random.uniform(0.75, 1.25)  # noqa: S311 no secret
        state.zone_polled = now
        return self.is_complete, action

    def _is_quiet(self, state: _PollState) -> bool:
        """Return whether nothing has changed since the poll that found nothing to do."""
        context, mark, now = state.context, state.mark, time.monotonic()
        if mark is None or now >= state.mark_ends:
            return False
        if now < state.zone_polled + _ZONE_SECONDS:
            return not context.log.has_next(mark.tip)
        state.zone_polled = now
        return is_quiet(mark, context.name, context.store, context.log)


@dataclass
class _Pace:
    """When rounds of one kind begin: every `seconds`, or less often, so that they take at most a `share` of a core.

    `due` is when the next one begins (`time.monotonic`), `cost` the CPU time of the last one, and `took` how long its
    longest poll took.
    """

    seconds: float
    share: float
    due: float = 0.0
    cost: float = 0.0
    took: float = 0.0

    def begin(self) -> None:
        """Begin a round."""
        self.due, self.cost = time.monotonic() + max(self.seconds, self.cost / self.share), 0.0
        self.took = 0.0


@dataclass
class PollRounds:
    """Polls all tables every `every` seconds, for a caller that works on those that need it: these are `busy`.

    A round is over when every table has answered, or is known to hang. With `polls_after_work`, a round follows the
    last work at once, for callers that wait for an idle round. Tables at rest on a disk have rounds of their own.
    """

    watch: TableWatch
    every: float
    polls_after_work: bool = False
    _all: _Pace = field(init=False)
    _disk: _Pace = field(init=False)
    _running: _Pace = field(init=False)
    _rounds: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Begin with a round of all tables."""
        self._all = self._running = _Pace(self.every, _SHARE_OF_A_CORE)
        self._disk = _Pace(_DISK_SECONDS, _DISK_SHARE, due=0.0 if self.every <= _DEFAULT_SECONDS else float("inf"))

    def is_idle(self, busy: Collection[TableName]) -> bool:
        """Return whether a round of polls has found nothing to do since the last work."""
        return self._rounds > 0 and not busy and not self.watch.is_polling

    def polls(self, busy: Collection[TableName]) -> list[PollResult]:
        """Begin a round if one is due; return the polls that have ended, after a short wait for one if none is busy."""
        at_once = self.polls_after_work and not busy and self._rounds == 0
        if not self.watch.is_polling:
            now = time.monotonic()
            if at_once or now >= self._all.due:
                self._begin(self._all)
                self._disk.due, self._disk.took = max(self._disk.due, now + _DISK_SECONDS), self._disk.took / 2
                self._rounds += 1
                self.watch.begin(busy)
            elif now >= self._disk_due(now):
                self._begin(self._disk)
                self.watch.begin(busy, on_disk=True)
        now = time.monotonic()
        until_due = _IDLE_SECONDS if self.watch.is_polling else min(self._all.due, self._disk_due(now)) - now
        ended = self.watch.polls(0.0 if busy else min(max(until_due, 0.0), _IDLE_SECONDS))
        self._running.cost += sum(poll.cpu_seconds for poll in ended if not poll.is_complete)
        self._running.took = max([self._running.took, *(poll.seconds for poll in ended)])
        if busy or any(isinstance(poll.action, Land | Rebuild) for poll in ended):
            self._rounds = 0
        return ended

    def _disk_due(self, now: float) -> float:
        """Return when the next round of disks begins; never before the round of all tables if it may delay that.

        A disk can be a slow mount.
        """
        return self._disk.due if max(now, self._disk.due) + self._disk.took < self._all.due else float("inf")

    def _begin(self, pace: _Pace) -> None:
        pace.begin()
        self._running = pace
