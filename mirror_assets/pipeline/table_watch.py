"""Looks at many tables again and again: which need work now? A quiet table costs one look for its next commit.

Nothing here counts: whatever is forgotten, a complete look finds again in log, landing zone and recorded failures.
"""

from __future__ import annotations

import queue
import random
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from mirror_assets.errors import MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.daemon_pool import DaemonPool
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.lag_gauges import note_poll
from mirror_assets.pipeline.next_action import Action, QuietMark, Rest, is_quiet, next_action
from mirror_assets.pipeline.plan import Boundaries

# Looks are mostly waiting for a store.
_LOOKS_AT_ONCE = 16
# The log tells of commits; what people do to the landing zone beside us may be seen later.
_ZONE_SECONDS = 60.0
_COMPLETE_SECONDS = 3600.0
# A look that takes longer hangs: the others don't wait for it.
_PATIENCE_SECONDS = 30.0
# A table that can't be looked at, is held, or is left alone after failures may be mended at any time. It is looked at
# again after so long, and less and less often: two hundred such tables may not cost hundreds of requests a second.
_TROUBLED_SECONDS, _LONGEST_TROUBLED_SECONDS = 15.0, 240.0


@dataclass(frozen=True)
class Seen:
    """A table that was looked at: what it needs, or why that can't be told.

    `is_complete`: the table was planned; else only the mark of an earlier look was compared. `cpu_seconds` is what the
    look has cost this process.
    """

    context: TableContext
    action: Action | MirrorError
    is_complete: bool
    cpu_seconds: float


@dataclass
class _Known:
    """What is remembered of a table, all in the clock of `time.monotonic`."""

    context: TableContext
    mark: QuietMark | None = None
    mark_ends: float = 0.0
    zone_seen: float = 0.0
    look: Future[None] | None = None
    began: float = 0.0
    not_before: float = 0.0
    troubled: int = 0


@dataclass
class TableWatch:
    """Looks at tables in threads. A table whose store does not answer keeps its thread, and the others get another.

    `boundaries` returns the last versions of a table's slices that are registered and have not landed. Unless
    `is_complete`, only commits are looked for, as in `next_action`.
    """

    contexts: Sequence[TableContext]
    boundaries: Callable[[TableName], Boundaries]
    is_complete: bool = True
    _known: dict[TableName, _Known] = field(init=False)
    _seen: queue.SimpleQueue[Seen] = field(default_factory=queue.SimpleQueue, init=False)
    _pool: DaemonPool = field(default_factory=lambda: DaemonPool("look", _LOOKS_AT_ONCE), init=False)

    def __post_init__(self) -> None:
        """Know the tables, and nothing about them yet."""
        self._known = {context.name: _Known(context) for context in self.contexts}

    def begin(self, busy: Collection[TableName] = ()) -> int:
        """Begin to look at all tables but the busy ones, first at those that wait longest; return at how many.

        A table that is still being looked at is left out: a store that does not answer is asked once. So is one that
        is in trouble, for some seconds.
        """
        now = time.monotonic()
        due = [known for name, known in self._known.items() if name not in busy and known.not_before <= now]
        free = [known for known in due if known.look is None]
        self._pool.size = _LOOKS_AT_ONCE + len(self.hanging)
        for known in sorted(free, key=lambda known: known.began):
            known.began = now
            known.look = self._pool.submit(partial(self._look, known))
        return len(free)

    @property
    def is_looking(self) -> bool:
        """Whether something may still be seen soon."""
        late = time.monotonic() - _PATIENCE_SECONDS
        return any(known.look is not None and known.began > late for known in self._known.values())

    @property
    def hanging(self) -> tuple[TableName, ...]:
        """Return the tables whose source or landing zone has not answered for long."""
        late = time.monotonic() - _PATIENCE_SECONDS
        looks = ((name, known.look, known.began) for name, known in self._known.items())
        return tuple(name for name, look, began in looks if look is not None and look.running() and began <= late)

    def seen(self, seconds: float = 0.0) -> list[Seen]:
        """Return what was seen since the last call, after waiting up to so many seconds for the first."""
        found: list[Seen] = []
        with suppress(queue.Empty):
            while True:
                found.append(self._seen.get(timeout=seconds) if seconds and not found else self._seen.get_nowait())
        for seen in found:
            self._known[seen.context.name].look = None
        return found

    def call_off(self) -> None:
        """Call off the looks that have not begun; they come first next time."""
        for known in self._known.values():
            if known.look is not None and known.look.cancel():
                known.look, known.began = None, 0.0

    def _look(self, known: _Known) -> None:
        began = time.thread_time()
        is_complete, action = self._action(known)
        if isinstance(action, MirrorError) or (isinstance(action, Rest) and action.pause):
            wait = min(_TROUBLED_SECONDS * 2**known.troubled, _LONGEST_TROUBLED_SECONDS)
            known.not_before = time.monotonic() + (min(wait, action.pause) if isinstance(action, Rest) else wait)
            known.troubled = min(known.troubled + 1, 10)
        else:
            known.troubled = 0
        note_poll(known.context, action)
        self._seen.put(Seen(known.context, action, is_complete, time.thread_time() - began))

    def _action(self, known: _Known) -> tuple[bool, Action | MirrorError]:
        context, mark = known.context, known.mark
        try:
            if self._is_quiet(known):
                return False, Rest(f"{context.name}: nothing new", mark)
            known.mark = None
            action = next_action(context, self.boundaries(context.name), time.time(), is_complete=self.is_complete)
        except MirrorError as error:
            if not isinstance(error, RetryError | UnknownOutcome):
                known.mark = None  # it was told as failing: only a complete look tells that it is well again
            return True, error
        except Exception as error:  # noqa: BLE001 a table that can't be looked at holds up no other
            known.mark = None
            return True, unexpected(str(context.name), error)
        self._remember(known, action.mark if isinstance(action, Rest) else None)
        return self.is_complete, action

    def _is_quiet(self, known: _Known) -> bool:
        context, mark, now = known.context, known.mark, time.monotonic()
        if mark is None or now >= known.mark_ends:
            return False
        if now < known.zone_seen + _ZONE_SECONDS:
            return not context.log.has_next(mark.tip)
        known.zone_seen = now
        return is_quiet(mark, context.name, context.store, context.log)

    def _remember(self, known: _Known, mark: QuietMark | None) -> None:
        now = time.monotonic()
        # Complete looks at many tables are spread over time.
        known.mark, known.mark_ends = mark, now + _COMPLETE_SECONDS * random.uniform(0.75, 1.25)  # noqa: S311 no secret
        known.zone_seen = now
