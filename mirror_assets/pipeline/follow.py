"""Mirrors commits as they come: looks at all tables again and again, and gives turns to those that need work."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.next_action import Land, Rebuild
from mirror_assets.pipeline.table_watch import Seen, TableWatch
from mirror_assets.pipeline.turns import Turns, Work

# To look whether there is something new may cost so much of one core; a large lake is looked at less often than asked
# for. Complete looks are not counted: they follow work, and would delay the next.
_SHARE_OF_A_CORE = 0.02
_TURN_SECONDS = 0.1
_IDLE_SECONDS = 0.5


@dataclass
class Follow:
    """Looks every `every` seconds, and starts the `work` of each table that needs some.

    `work` takes a table, and why to rebuild it first, if so. `told` receives every look, in the calling thread. With
    `looks_again`, a round follows at once behind the last work: its caller waits for one that finds nothing.
    """

    watch: TableWatch
    turns: Turns
    work: Callable[[TableContext, str | None], Work]
    told: Callable[[Seen], None]
    every: float
    looks_again: bool = False
    _due: float = field(default=0.0, init=False)
    _cost: float = field(default=0.0, init=False)
    _rounds: int = field(default=0, init=False)

    def until(self, is_over: Callable[[bool], bool]) -> None:
        """Go on until `is_over`, which takes whether a round of looks has found nothing to do; turns may be under way.

        A round is over when every table has answered, or is known to hang.
        """
        while not is_over(self._is_idle()):
            if not self.watch.is_looking and self._is_due():
                self._begin_round()
            self._take(self.watch.seen(0.0 if self.turns.tables else _IDLE_SECONDS))
            if self.turns.tables:
                self._rounds = 0
                self.turns.go_on(_TURN_SECONDS)

    def _is_due(self) -> bool:
        at_once = self.looks_again and not self.turns.tables and self._rounds == 0
        return at_once or time.monotonic() >= self._due

    def _is_idle(self) -> bool:
        return self._rounds > 0 and not self.turns.tables and not self.watch.is_looking

    def _begin_round(self) -> None:
        self._due = time.monotonic() + max(self.every, self._cost / _SHARE_OF_A_CORE)
        self._cost = 0.0
        self._rounds += 1
        self.watch.begin(self.turns.tables)

    def _take(self, looks: list[Seen]) -> None:
        for seen in looks:
            self._cost += 0.0 if seen.is_complete else seen.cpu_seconds
            self.told(seen)
            if isinstance(seen.action, Land | Rebuild):
                why = seen.action.why if isinstance(seen.action, Rebuild) else None
                self.turns.add(seen.context.name, self.work(seen.context, why))
