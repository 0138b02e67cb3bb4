"""The gauges of tables, checks and daemons. Lag is computed at each collection: it grows while a table is stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from opentelemetry.metrics import CallbackOptions, Meter, Observation

# Returns the time of each daemon's last heartbeat, in seconds since 1970.
ReadHeartbeats: TypeAlias = "Callable[[], Mapping[str, float]]"
Observations: TypeAlias = "Iterator[Observation]"


@dataclass(frozen=True)
class TableProgress:
    """The newest known versions of a table; times are seconds since 1970.

    `waiting_since` is the time of the oldest pending commit, None if none is pending; `polled` is the time of the last
    successful poll. `is_unreadable`: the last poll failed, so whether a commit is pending is unknown.
    """

    tip: int | None = None
    covered: int | None = None
    waiting_since: float | None = None
    polled: float = 0.0
    published: float | None = None
    is_unreadable: bool = False

    def lag(self, now: float) -> float | None:
        """Return the lag in seconds at `now`; None while it is unknown, never 0 for a source that can't be read."""
        if self.waiting_since is not None:
            return max(0.0, now - self.waiting_since)
        return None if self.tip is None or self.is_unreadable else 0.0

    @property
    def pending_commits(self) -> int | None:
        """The number of commits that are known to be pending; None while it is unknown."""
        if self.tip is None or self.covered is None:
            return None
        if self.waiting_since is None:
            return None if self.is_unreadable else 0
        return max(1, self.tip - self.covered)


# Name, unit (UCUM's, with annotations in braces), text and value of each gauge of a table.
_OF_TABLES: tuple[tuple[str, str, str, Callable[[TableProgress], float | None]], ...] = (
    ("mirror.lag", "s", "Age of the oldest pending commit; 0 if none is pending.", lambda it: it.lag(time.time())),
    ("mirror.lag.commits", "{commit}", "Commits that are known to be pending.", lambda it: it.pending_commits),
    ("mirror.source.version", "{version}", "The newest known version of the source.", lambda it: it.tip),
    ("mirror.covered.version", "{version}", "The version that has landed.", lambda it: it.covered),
    ("mirror.polled.time", "s", "When the source was last polled, since 1970; 0 if never.", lambda it: it.polled),
    ("mirror.published.time", "s", "When this process last published a slice, since 1970.", lambda it: it.published),
)


class TableGauges:
    """The progress of tables and the newest results of their checks; safe to share between threads.

    `read_heartbeats` is called at each collection, if it is set.
    """

    def __init__(self) -> None:
        """Start without tables."""
        self._tables: dict[str, TableProgress] = {}
        self._checks: dict[tuple[str, str], bool] = {}
        self._mirrored: dict[str, tuple[str, int | None]] = {}
        self._lock = threading.Lock()
        self.read_heartbeats: ReadHeartbeats | None = None

    def register(self, meter: Meter) -> None:
        """Create the observable gauges."""

        def of_tables(value: Callable[[TableProgress], float | None]) -> Callable[[CallbackOptions], Observations]:
            def observe(_options: CallbackOptions) -> Observations:
                with self._lock:
                    tables = dict(self._tables)
                for table, progress in tables.items():
                    if (current := value(progress)) is not None:
                        yield Observation(current, {"table": table})

            return observe

        def of_checks(_options: CallbackOptions) -> Observations:
            with self._lock:
                checks = dict(self._checks)
            for (table, check), passed in checks.items():
                yield Observation(int(passed), {"table": table, "check": check})

        def of_daemons(_options: CallbackOptions) -> Observations:
            for daemon, beat in (self.read_heartbeats() if self.read_heartbeats else {}).items():
                yield Observation(beat, {"daemon": daemon})

        for name, unit, text, value in _OF_TABLES:
            meter.create_observable_gauge(name, [of_tables(value)], unit, text)
        passed = "0 if the check's newest result is a failure, else 1."
        meter.create_observable_gauge("mirror.check.passed", [of_checks], "", passed)
        state = "1 for the state in which the replicator shows the table."
        meter.create_observable_gauge("mirror.table.state", [self._states], "", state)
        latency = "From the source's commit to the mirror's, for the last change, as Fabric reports it."
        meter.create_observable_gauge("mirror.sync.latency", [self._latencies], "s", latency)
        beat = "The last heartbeat of a required Dagster daemon, since 1970; 0 if never."
        meter.create_observable_gauge("mirror.daemon.heartbeat.time", [of_daemons], "s", beat)

    def _states(self, _options: CallbackOptions) -> Observations:
        for table, (state, _) in dict(self._mirrored).items():
            yield Observation(1, {"table": table, "state": state})

    def _latencies(self, _options: CallbackOptions) -> Observations:
        for table, (_, latency) in dict(self._mirrored).items():
            if latency is not None:
                yield Observation(latency, {"table": table})

    def add_tables(self, tables: Iterable[str]) -> None:
        """Add tables about which nothing is known yet, so that one that is never polled is visible."""
        with self._lock:
            for table in tables:
                self._tables.setdefault(table, TableProgress())

    def set_source(self, table: str, tip: int, covered: int, waiting_since: float | None) -> None:
        """Set the source's newest version and the time of the oldest pending commit, as just read."""
        with self._lock:
            known = self._tables.get(table, TableProgress())
            self._tables[table] = replace(
                known, tip=tip, covered=covered, waiting_since=waiting_since, polled=time.time(), is_unreadable=False
            )

    def set_unreadable(self, table: str) -> None:
        """Note that the source couldn't be read: a commit may be pending by now."""
        with self._lock:
            self._tables[table] = replace(self._tables.get(table, TableProgress()), is_unreadable=True)

    def set_covered(self, table: str, covered: int, waiting_since: float | None) -> None:
        """Set the version that has landed, and the time of the next pending commit, if one is known.

        While chunks of a snapshot land, nothing is covered, and the oldest commit remains pending.
        """
        with self._lock:
            known = self._tables.get(table, TableProgress())
            since = known.waiting_since if covered < 0 else waiting_since
            tip = covered if known.tip is None else max(known.tip, covered)
            self._tables[table] = replace(known, tip=tip, covered=covered, waiting_since=since, published=time.time())

    def set_check(self, table: str, check: str, *, passed: bool) -> None:
        """Set the newest result of a check."""
        with self._lock:
            self._checks[table, check] = passed

    def set_mirrored(self, table: str, state: str, latency: int | None) -> None:
        """Set the state in which the replicator shows the table, and the latency of its last change, if known."""
        with self._lock:
            self._mirrored[table] = (state, latency)

    def progress(self, table: str) -> TableProgress:
        """Return the newest known versions of the table."""
        with self._lock:
            return self._tables.get(table, TableProgress())
