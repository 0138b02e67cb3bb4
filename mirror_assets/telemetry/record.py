"""What the other rooms tell. Without a recorder, which is the default, nothing is kept and nothing is imported."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from mirror_assets.telemetry import instruments as known
from mirror_assets.telemetry.instruments import Instrument, Stage
from mirror_assets.telemetry.scope import Scope, current_scope, slice_scope
from mirror_assets.telemetry.table_book import Heartbeats, TableBook
from mirror_assets.telemetry.trace_ids import slice_trace


class Recorder(Protocol):
    """Keeps and exports what is told."""

    @property
    def book(self) -> TableBook:
        """What is known of tables."""

    @property
    def traces(self) -> bool:
        """Whether spans are exported."""

    def add(self, counter: Instrument, value: float, labels: Mapping[str, str]) -> None:
        """Add to a counter."""

    def observe(self, histogram: Instrument, value: float, labels: Mapping[str, str]) -> None:
        """Add a value to a histogram."""

    def span(
        self, name: str, trace: int, attributes: Mapping[str, str], began_ns: int | None = None
    ) -> AbstractContextManager[None]:
        """Time the block as a span below the one around it; without one, as a root of the trace."""

    def past_span(self, name: str, began_ns: int, ended_ns: int) -> None:
        """Add a span that has ended below the one that is open; times are nanoseconds since 1970."""

    def annotate(self, name: str, value: str | int) -> None:
        """Add an attribute to the span that is open."""


@dataclass(frozen=True)
class Work:
    """A slice of a table in the landing zone at the address `zone`."""

    zone: str
    table: str
    slice: str

    @property
    def trace(self) -> int:
        """The id of its trace."""
        return slice_trace(self.zone, self.table, self.slice)


@dataclass(frozen=True)
class LandedFigures:
    """What a publication has landed. `rows` are by kind of change; `committed` is its last commit's time, if known.

    `requests` and `capacity_seconds` are what it costs on OneLake, as estimated.
    """

    table: str
    kind: str
    files: int
    bytes: int
    rows: Mapping[str, int]
    committed: float | None
    requests: float
    capacity_seconds: float


@dataclass
class _Switch:
    recorder: Recorder | None = None


_SWITCH = _Switch()


def is_on() -> bool:
    """Whether anybody keeps what is told."""
    return _SWITCH.recorder is not None


def use(recorder: Recorder | None) -> None:
    """Tell this recorder from now on, or none."""
    _SWITCH.recorder = recorder


def _trace_text(work: Work) -> str | None:
    recorder = _SWITCH.recorder
    return f"{work.trace:032x}" if recorder is not None and recorder.traces else None


@contextmanager
def slice_work(work: Work) -> Iterator[None]:
    """Trace the block as the whole way of a slice; the plan that it is from comes first in it."""
    recorder = _SWITCH.recorder
    with slice_scope(work.table, work.slice, _trace_text(work)) as scope:
        if recorder is None:
            yield
            return
        plan, scope.plan = scope.plan, None
        with recorder.span("slice", work.trace, _attributes(work), plan[0] if plan else None):
            if plan is not None:
                recorder.past_span(Stage.PLAN.value, *plan)
            yield


@contextmanager
def stage(name: Stage, work: Work) -> Iterator[None]:
    """Trace the block as a stage of a slice, and count its time."""
    recorder, began = _SWITCH.recorder, time.monotonic()
    with slice_scope(work.table, work.slice, _trace_text(work)) as scope:
        before, scope.stage = scope.stage, name.value
        span = recorder.span(name.value, work.trace, _attributes(work)) if recorder else nullcontext()
        try:
            with span:
                yield
        finally:
            scope.stage = before
            _spent(work.table, name, time.monotonic() - began)


@contextmanager
def planning(table: str) -> Iterator[None]:
    """Count the block as the planning of a table; the next slice of this thread has it in its trace."""
    began, began_ns = time.monotonic(), time.time_ns()
    try:
        yield
    finally:
        _spent(table, Stage.PLAN, time.monotonic() - began)
    scope = current_scope()
    if scope is not None and scope.table == table:
        scope.plan = (began_ns, time.time_ns())


def applied(works: Sequence[Work], began_ns: int) -> None:
    """Tell that the mirror has applied these slices of a table together, from `began_ns` (since 1970) until now."""
    recorder = _SWITCH.recorder
    if recorder is None or not works:
        return
    for work in works:
        with recorder.span(Stage.APPLY.value, work.trace, _attributes(work), began_ns):
            pass
    _spent(works[0].table, Stage.APPLY, (time.time_ns() - began_ns) / 1e9)


def _attributes(work: Work) -> dict[str, str]:
    return {"mirror.table": work.table, "mirror.slice": work.slice}


def _spent(table: str, name: Stage, seconds: float) -> None:
    recorder = _SWITCH.recorder
    if recorder is not None:
        recorder.add(known.STAGE_SECONDS, seconds, {"table": table, "stage": name.value})
        recorder.observe(known.STAGE_DURATION, seconds, {"stage": name.value})


def attempt(id_: str) -> None:
    """Tell which attempt the calling thread works on."""
    scope: Scope | None = current_scope()
    if scope is not None:
        scope.attempt = id_
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.annotate("mirror.attempt", id_)


def landed(figures: LandedFigures) -> None:
    """Count what a publication has landed."""
    recorder, table = _SWITCH.recorder, {"table": figures.table}
    if recorder is None:
        return
    recorder.annotate("mirror.files", figures.files)
    recorder.annotate("mirror.rows", sum(figures.rows.values()))
    recorder.add(known.SLICES, 1, {**table, "kind": figures.kind})
    recorder.add(known.FILES, figures.files, table)
    recorder.add(known.BYTES, figures.bytes, table)
    for change, rows in figures.rows.items():
        recorder.add(known.ROWS, rows, {**table, "change": change})
    recorder.add(known.COST_REQUESTS, figures.requests, table)
    recorder.add(known.COST_CAPACITY, figures.capacity_seconds, table)
    if figures.committed is not None:
        recorder.observe(known.LANDING_DELAY, max(0.0, time.time() - figures.committed), {})


def failed(table: str, code: str) -> None:
    """Count a failed attempt at a table."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.add(known.FAILURES, 1, {"table": table, "code": code})


def request(store: str, operation: str, status: str) -> None:
    """Count a request to a store. `store` is its host or root without credentials."""
    if _SWITCH.recorder is not None:
        labels = {"store": store, "operation": operation, "status": status}
        _SWITCH.recorder.add(known.REQUESTS, 1, labels)


def checked(table: str, check: str, *, passed: bool) -> None:
    """Tell the newest result of a check."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.book.check(table, check, passed=passed)


def follows(tables: Iterable[str]) -> None:
    """Name the tables that this process mirrors."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.book.follow(tables)


def hears(heartbeats: Heartbeats | None) -> None:
    """Ask for the daemons' heartbeats like this whenever somebody wants to know; None: no more."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.book.heartbeats = heartbeats


def looked(table: str, tip: int, covered: int, waiting_since: float | None) -> None:
    """Tell what the source has now: its newest version, and since when the oldest waiting commit is there, if any."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.book.looked(table, tip, covered, waiting_since, time.time())


def unseen(table: str) -> None:
    """Tell that the source could not be looked at."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.book.unseen(table)


def covers(table: str, version: int, waiting_since: float | None) -> None:
    """Tell which version has landed, and since when the next commit waits that is known of, if any."""
    if _SWITCH.recorder is not None:
        _SWITCH.recorder.book.landed(table, version, waiting_since, time.time())


def looked_seconds_ago(table: str) -> float | None:
    """Return how long ago the source was last looked at; None if nobody keeps that."""
    if _SWITCH.recorder is None:
        return None
    return time.time() - _SWITCH.recorder.book.figures(table).looked
