"""Records metrics and spans through OpenTelemetry's API, which does nothing unless an SDK is configured.

`exporting` (export.py) configures one for a block. Outside it, counters, histograms and spans go to the process's own
OpenTelemetry setup, if there is one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from opentelemetry import metrics, trace

from mirror_assets.errors import MirrorError
from mirror_assets.telemetry import instruments
from mirror_assets.telemetry.instruments import COUNTERS, HISTOGRAMS, SCOPE, Instrument, Stage
from mirror_assets.telemetry.scope import current_scope, slice_scope
from mirror_assets.telemetry.table_gauges import ReadHeartbeats, TableGauges

# The trace id of the next root span. Only the id generator of `exporting` reads it.
next_trace_id: ContextVar[int | None] = ContextVar("mirror_assets_next_trace_id", default=None)


@dataclass(frozen=True)
class SliceWork:
    """A slice of a table in the landing zone at the address `zone`."""

    zone: str
    table: str
    slice: str

    @property
    def trace_id(self) -> int:
        """The 128-bit id of its trace: every process that stages, publishes or applies the slice computes the same."""
        digest = hashlib.sha256(f"{self.zone}\n{self.table}\n{self.slice}".encode()).digest()
        return int.from_bytes(digest[:16], "big") or 1

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of its spans."""
        return {"mirror.table": self.table, "mirror.slice": self.slice}


@dataclass(frozen=True)
class PublishedFiles:
    """The landing files of one publication. `rows` are by kind of change; `committed` is the last commit's time.

    `requests` and `capacity_seconds` are their estimated cost on OneLake.
    """

    table: str
    kind: str
    files: int
    bytes: int
    rows: Mapping[str, int]
    committed: float | None
    requests: float
    capacity_seconds: float


class Telemetry:
    """The counters, histograms and tracer of a pair of providers; `tables` has the gauges while they are exported."""

    def __init__(
        self, meters: metrics.MeterProvider, tracers: trace.TracerProvider, tables: TableGauges | None = None
    ) -> None:
        """Create the instruments."""
        meter, self.tracer, self.tables = meters.get_meter(SCOPE), tracers.get_tracer(SCOPE), tables
        self.counters = {one: meter.create_counter(one.name, one.unit, one.text) for one in COUNTERS}
        self.histograms = {
            one: meter.create_histogram(
                one.name, one.unit, one.text, explicit_bucket_boundaries_advisory=list(one.bounds)
            )
            for one in HISTOGRAMS
        }


_PROCESS_TELEMETRY = Telemetry(metrics.get_meter_provider(), trace.get_tracer_provider())
_ACTIVE = [_PROCESS_TELEMETRY]


def use(telemetry: Telemetry | None) -> None:
    """Record to this telemetry from now on; None: to the process's own OpenTelemetry setup."""
    _ACTIVE[0] = telemetry or _PROCESS_TELEMETRY


def table_gauges() -> TableGauges | None:
    """Return the gauges of tables, or None while they aren't exported."""
    return _ACTIVE[0].tables


def _count(counter: Instrument, value: float, labels: Mapping[str, str]) -> None:
    _ACTIVE[0].counters[counter].add(value, labels)


@contextmanager
def _span(name: str, work: SliceWork, began_ns: int | None = None) -> Iterator[str | None]:
    """Trace the block; yield the trace id in hexadecimal, None without traces.

    A span that failed has the error's code as its status, never the message, which may contain values of rows.
    """
    token = next_trace_id.set(work.trace_id)
    try:
        with _ACTIVE[0].tracer.start_as_current_span(
            name,
            attributes=work.attributes,
            start_time=began_ns,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            context = span.get_span_context()
            try:
                yield f"{context.trace_id:032x}" if context.is_valid else None
            except BaseException as error:
                code = error.code.value if isinstance(error, MirrorError) else type(error).__name__
                span.set_status(trace.Status(trace.StatusCode.ERROR, code))
                raise
    finally:
        next_trace_id.reset(token)


@contextmanager
def slice_span(work: SliceWork) -> Iterator[None]:
    """Trace the block as the processing of a slice, including the plan that this thread made for it."""
    outer = current_scope()
    plan = outer.plan if outer is not None and outer.table == work.table else None
    with (
        _span("slice", work, plan[0] if plan else None) as trace_id,
        slice_scope(work.table, work.slice, trace_id) as scope,
    ):
        scope.plan = None
        if plan is not None:
            _ACTIVE[0].tracer.start_span(Stage.PLAN.value, start_time=plan[0]).end(plan[1])
        yield


@contextmanager
def stage_span(name: Stage, work: SliceWork) -> Iterator[None]:
    """Trace the block as a stage of a slice, and measure its duration."""
    began = time.monotonic()
    with _span(name.value, work) as trace_id, slice_scope(work.table, work.slice, trace_id) as scope:
        before, scope.stage = scope.stage, name.value
        try:
            yield
        finally:
            scope.stage = before
            _record_duration(work.table, name, time.monotonic() - began)


@contextmanager
def planning(table: str) -> Iterator[None]:
    """Measure the block as the planning of a table; the trace of this thread's next slice includes it."""
    began, began_ns = time.monotonic(), time.time_ns()
    try:
        yield
    finally:
        _record_duration(table, Stage.PLAN, time.monotonic() - began)
    scope = current_scope()
    if scope is not None and scope.table == table:
        scope.plan = (began_ns, time.time_ns())


def record_applied(works: Sequence[SliceWork], began_ns: int) -> None:
    """Record that the mirror applied these slices of a table together, from `began_ns` (since 1970) until now."""
    for work in works:
        with _span(Stage.APPLY.value, work, began_ns):
            pass
    if works:
        _record_duration(works[0].table, Stage.APPLY, (time.time_ns() - began_ns) / 1e9)


def _record_duration(table: str, name: Stage, seconds: float) -> None:
    _count(instruments.STAGE_SECONDS, seconds, {"table": table, "stage": name.value})
    _ACTIVE[0].histograms[instruments.STAGE_DURATION].record(seconds, {"stage": name.value})


def set_attempt(attempt_id: str) -> None:
    """Add the attempt that the calling thread works on to its log lines and its span."""
    scope = current_scope()
    if scope is not None:
        scope.attempt = attempt_id
    trace.get_current_span().set_attribute("mirror.attempt", attempt_id)


def record_published(published: PublishedFiles) -> None:
    """Count the landing files of a publication."""
    table, span = {"table": published.table}, trace.get_current_span()
    span.set_attribute("mirror.files", published.files)
    span.set_attribute("mirror.rows", sum(published.rows.values()))
    _count(instruments.SLICES, 1, {**table, "kind": published.kind})
    _count(instruments.FILES, published.files, table)
    _count(instruments.BYTES, published.bytes, table)
    for change, rows in published.rows.items():
        _count(instruments.ROWS, rows, {**table, "change": change})
    _count(instruments.COST_REQUESTS, published.requests, table)
    _count(instruments.COST_CAPACITY, published.capacity_seconds, table)
    if published.committed is not None:
        delay = max(0.0, time.time() - published.committed)
        _ACTIVE[0].histograms[instruments.LANDING_DELAY].record(delay, {})


def count_failure(table: str, code: str) -> None:
    """Count a failed attempt to mirror a table."""
    _count(instruments.FAILURES, 1, {"table": table, "code": code})


def count_request(store: str, operation: str, status: str) -> None:
    """Count a request to a store. `store` is its host or root without credentials."""
    _count(instruments.REQUESTS, 1, {"store": store, "operation": operation, "status": status})


def record_check(table: str, check: str, *, passed: bool) -> None:
    """Set the newest result of a check."""
    if gauges := table_gauges():
        gauges.set_check(table, check, passed=passed)


def export_tables(tables: Iterable[str]) -> None:
    """Name the tables that this process mirrors, so that a table that is never polled is visible."""
    if gauges := table_gauges():
        gauges.add_tables(tables)


def export_heartbeats(read: ReadHeartbeats | None) -> None:
    """Export the daemons' heartbeats, which `read` returns; None: stop."""
    if gauges := table_gauges():
        gauges.read_heartbeats = read
