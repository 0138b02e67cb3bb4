"""Records metrics and spans through OpenTelemetry's API, which does nothing unless an SDK is configured.

`exporting` (export.py) configures one for a block. Outside it, counters, histograms and spans go to the process's own
OpenTelemetry setup, if there is one. No label contains a slice or a version.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Final

from opentelemetry import metrics, trace

from mirror_assets.errors import MirrorError
from mirror_assets.telemetry.scope import current_scope, slice_scope
from mirror_assets.telemetry.table_gauges import ReadHeartbeats, TableGauges

# The name of the meter and the tracer.
SCOPE: Final = "mirror_assets"
# The trace id of the next root span. Only the id generator of `exporting` reads it.
next_trace_id: ContextVar[int | None] = ContextVar("mirror_assets_next_trace_id", default=None)
_STAGE_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_DELAY_BOUNDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)


class Stage(str, Enum):
    """The stages of a slice."""

    PLAN = "plan"
    STAGE = "stage"
    CHECK = "check"
    PUBLISH = "publish"
    APPLY = "apply"


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


class Telemetry:
    """The instruments of a pair of providers; `tables` has the gauges while they are exported.

    Units are UCUM's, with annotations in braces.
    """

    def __init__(
        self, meters: metrics.MeterProvider, tracers: trace.TracerProvider, tables: TableGauges | None = None
    ) -> None:
        """Create the instruments."""
        meter, self.tracer, self.tables = meters.get_meter(SCOPE), tracers.get_tracer(SCOPE), tables
        counter, histogram = meter.create_counter, meter.create_histogram
        self.slices = counter("mirror.slices", "{slice}", "Slices, or chunks of a snapshot, that have landed.")
        self.rows = counter("mirror.rows", "{row}", "Rows in landing files, by the kind of change.")
        self.bytes = counter("mirror.landed", "By", "Bytes of landing files.")
        self.files = counter("mirror.files", "{file}", "Landing files.")
        self.unproved_commits = counter(
            "mirror.commits.unproved", "{commit}", "Landed commits that the source's log can't prove."
        )
        self.commits_by_files = counter(
            "mirror.commits.by_files", "{commit}", "Landed commits read by files, because their feed could not be read."
        )
        self.failures = counter("mirror.failures", "{failure}", "Failed attempts at a table, by the error's code.")
        self.stage_seconds = counter("mirror.stage", "s", "Time spent in a stage.")
        self.requests = counter(
            "mirror.store.requests", "{request}", "Requests to stores, by the status of the response."
        )
        self.estimated_requests = counter("mirror.estimated.requests", "{request}", "Estimated requests to OneLake.")
        self.estimated_capacity = counter(
            "mirror.estimated.capacity_unit_seconds", "{CU.s}", "Estimated Fabric capacity for these requests."
        )
        self.stage_duration = histogram(
            "mirror.stage.duration",
            "s",
            "Duration of one stage of one slice.",
            explicit_bucket_boundaries_advisory=_STAGE_BOUNDS,
        )
        self.landing_delay = histogram(
            "mirror.landing.delay",
            "s",
            "Age of a slice's last commit when the slice lands.",
            explicit_bucket_boundaries_advisory=_DELAY_BOUNDS,
        )


_PROCESS_TELEMETRY = Telemetry(metrics.get_meter_provider(), trace.get_tracer_provider())
_ACTIVE = [_PROCESS_TELEMETRY]


def use(telemetry: Telemetry | None) -> None:
    """Record to this telemetry from now on; None: to the process's own OpenTelemetry setup."""
    _ACTIVE[0] = telemetry or _PROCESS_TELEMETRY


def table_gauges() -> TableGauges | None:
    """Return the gauges of tables, or None while they aren't exported."""
    return _ACTIVE[0].tables


@contextmanager
def _span(name: str, work: SliceWork, began_ns: int | None = None) -> Iterator[str | None]:
    """Trace the block; yield the trace id in hexadecimal, None without traces.

    A span that failed has the error's code as its status, never the message, which may contain values of rows.
    """
    token = next_trace_id.set(work.trace_id)
    try:
        with _ACTIVE[0].tracer.start_as_current_span(
            name,
            attributes={"mirror.table": work.table, "mirror.slice": work.slice},
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
    _ACTIVE[0].stage_seconds.add(seconds, {"table": table, "stage": name.value})
    _ACTIVE[0].stage_duration.record(seconds, {"stage": name.value})


def set_attempt(attempt_id: str) -> None:
    """Add the attempt that the calling thread works on to its log lines and its span."""
    scope = current_scope()
    if scope is not None:
        scope.attempt = attempt_id
    trace.get_current_span().set_attribute("mirror.attempt", attempt_id)


def record_published(
    table: str,
    kind: str,
    *,
    files: int,
    size: int,
    rows: Mapping[str, int],
    committed: float | None,
    requests: float,
    capacity_seconds: float,
    unproved: int,
    by_files: int,
) -> None:
    """Count the landing files of a publication: their `size` in bytes, and their `rows` by kind of change.

    `committed` is the last commit's time. `requests` and `capacity_seconds` are the estimated cost on OneLake.
    `unproved` and `by_files` are numbers of commits.
    """
    active, labels, span = _ACTIVE[0], {"table": table}, trace.get_current_span()
    span.set_attribute("mirror.files", files)
    span.set_attribute("mirror.rows", sum(rows.values()))
    active.slices.add(1, {**labels, "kind": kind})
    active.files.add(files, labels)
    active.bytes.add(size, labels)
    for change, count in rows.items():
        active.rows.add(count, {**labels, "change": change})
    active.unproved_commits.add(unproved, labels)
    active.commits_by_files.add(by_files, labels)
    active.estimated_requests.add(requests, labels)
    active.estimated_capacity.add(capacity_seconds, labels)
    if committed is not None:
        active.landing_delay.record(max(0.0, time.time() - committed), {})


def count_failure(table: str, code: str) -> None:
    """Count a failed attempt to mirror a table."""
    _ACTIVE[0].failures.add(1, {"table": table, "code": code})


def count_request(store: str, operation: str, status: str) -> None:
    """Count a request to a store. `store` is its host or root without credentials."""
    _ACTIVE[0].requests.add(1, {"store": store, "operation": operation, "status": status})


def record_check(table: str, check: str, *, passed: bool) -> None:
    """Set the newest result of a check."""
    if gauges := table_gauges():
        gauges.set_check(table, check, passed=passed)


def record_mirrored(table: str, state: str, latency: int | None) -> None:
    """Record what the replicator reports of a table."""
    if gauges := table_gauges():
        gauges.set_mirrored(table, state, latency)


def export_tables(tables: Iterable[str]) -> None:
    """Name the tables that this process mirrors, so that a table that is never polled is visible."""
    if gauges := table_gauges():
        gauges.add_tables(tables)


def export_heartbeats(read: ReadHeartbeats | None) -> None:
    """Export the daemons' heartbeats, which `read` returns; None: stop."""
    if gauges := table_gauges():
        gauges.read_heartbeats = read
