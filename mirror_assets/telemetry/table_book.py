"""What is known of each table, and of the daemons.

Lag is computed when somebody asks, so it grows while nothing happens.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class TableFigures:
    """What is known of a table; times are seconds since 1970.

    `waiting_since` is the time of the oldest commit that waits, None if none does; `looked` is when that was found.
    `is_blind`: the newest look has failed, so nobody knows whether one waits by now.
    """

    tip: int | None = None
    covered: int | None = None
    waiting_since: float | None = None
    looked: float = 0.0
    landed: float | None = None
    is_blind: bool = False

    def lag(self, now: float) -> float | None:
        """Return the lag in seconds at `now`; None while nothing is known, and never 0 for a source that is away."""
        if self.waiting_since is not None:
            return max(0.0, now - self.waiting_since)
        return None if self.tip is None or self.is_blind else 0.0

    @property
    def commits(self) -> int | None:
        """Commits that are known to wait; None while nothing is known."""
        if self.tip is None or self.covered is None:
            return None
        if self.waiting_since is None:
            return None if self.is_blind else 0
        return max(1, self.tip - self.covered)


Heartbeats = Callable[[], Mapping[str, float]]
"""Asks when each daemon last said that it runs, in seconds since 1970."""


class TableBook:
    """The figures of tables and the newest results of their checks; threads may share it.

    `heartbeats` is there while somebody knows of daemons; it is asked when somebody wants to know.
    """

    def __init__(self) -> None:
        """Know no table yet."""
        self._tables: dict[str, TableFigures] = {}
        self._checks: dict[tuple[str, str], bool] = {}
        self._lock = threading.Lock()
        self.heartbeats: Heartbeats | None = None

    def follow(self, tables: Iterable[str]) -> None:
        """Name tables of which nothing is known yet, so that one that is never looked at is seen."""
        with self._lock:
            for table in tables:
                self._tables.setdefault(table, TableFigures())

    def looked(self, table: str, tip: int, covered: int, waiting_since: float | None, now: float) -> None:
        """Note what a look at the source has found at `now`."""
        with self._lock:
            known = self._tables.get(table, TableFigures())
            found = replace(known, tip=tip, covered=covered, waiting_since=waiting_since, looked=now)
            self._tables[table] = replace(found, is_blind=False)

    def unseen(self, table: str) -> None:
        """Note that the source could not be looked at: what was known of it is no news any more."""
        with self._lock:
            self._tables[table] = replace(self._tables.get(table, TableFigures()), is_blind=True)

    def landed(self, table: str, covered: int, waiting_since: float | None, now: float) -> None:
        """Note that the version has landed, and when the next commit that is known to wait was made, if there is one.

        While chunks of a snapshot land, nothing is covered, and the oldest commit goes on waiting.
        """
        with self._lock:
            known = self._tables.get(table, TableFigures())
            since = known.waiting_since if covered < 0 else waiting_since
            tip = covered if known.tip is None else max(known.tip, covered)
            self._tables[table] = replace(known, tip=tip, covered=covered, waiting_since=since, landed=now)

    def check(self, table: str, check: str, *, passed: bool) -> None:
        """Note the newest result of a check."""
        with self._lock:
            self._checks[table, check] = passed

    def figures(self, table: str) -> TableFigures:
        """Return what is known of the table."""
        with self._lock:
            return self._tables.get(table, TableFigures())

    def tables(self) -> Mapping[str, TableFigures]:
        """Return what is known of all tables."""
        with self._lock:
            return dict(self._tables)

    def checks(self) -> Mapping[tuple[str, str], bool]:
        """Return by table and check whether its newest result is passed."""
        with self._lock:
            return dict(self._checks)
