"""OpenTelemetry's SDK behind the recorder: counters and spans as they are told, gauges as they are asked for."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from typing import Final

from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Observation
from opentelemetry.sdk import metrics as sdk
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import CardinalityLimits, MetricReader
from opentelemetry.sdk.resources import (
    SERVICE_INSTANCE_ID,
    SERVICE_NAME,
    SERVICE_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Status, StatusCode, get_current_span, set_span_in_context

from mirror_assets.errors import MirrorError
from mirror_assets.telemetry import instruments as known
from mirror_assets.telemetry.instruments import Instrument
from mirror_assets.telemetry.table_book import TableBook, TableFigures

_SCOPE: Final = "mirror_assets"
_NEXT_TRACE: ContextVar[int | None] = ContextVar("mirror_assets_next_trace", default=None)
# The SDK stops at 2,000 series a metric: 500 tables have nine checks each.
_SERIES = 100_000
SERIES_LIMITS: Final[CardinalityLimits] = dict.fromkeys((sdk.Counter, sdk.Histogram, sdk.ObservableGauge), _SERIES)
_GAUGES: Final[Mapping[Instrument, Callable[[TableFigures, float], float | None]]] = {
    known.LAG: lambda figures, now: figures.lag(now),
    known.LAG_COMMITS: lambda figures, _: figures.commits,
    known.SOURCE_VERSION: lambda figures, _: figures.tip,
    known.COVERED_VERSION: lambda figures, _: figures.covered,
    known.LOOKED: lambda figures, _: figures.looked,
    known.LANDED: lambda figures, _: figures.landed,
}


class _SliceTraces(RandomIdGenerator):
    """Gives a root span the id of its slice's trace."""

    def generate_trace_id(self) -> int:
        return _NEXT_TRACE.get() or super().generate_trace_id()

    def is_trace_id_random(self) -> bool:
        return False


def resource() -> Resource:
    """Return what identifies this process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it."""
    instance = f"{platform.node()}:{os.getpid()}"
    own = {SERVICE_NAME: "mirror-assets", SERVICE_VERSION: version("mirror-assets"), SERVICE_INSTANCE_ID: instance}
    return Resource.create(own).merge(OTELResourceDetector().detect())


class OpenTelemetryRecorder:
    """A recorder on providers of its own; the process's global ones are left alone."""

    def __init__(self, readers: list[MetricReader], spans: SpanProcessor | None) -> None:
        """Read metrics by the readers, and hand spans to the processor; without one, there are no traces."""
        self.book = TableBook()
        # The end of the block that opened it shuts it down, not the end of the process.
        self._meters = MeterProvider(readers, resource(), shutdown_on_exit=False)
        self._tracers = TracerProvider(resource=resource(), id_generator=_SliceTraces(), shutdown_on_exit=False)
        self.traces = spans is not None
        if spans is not None:
            self._tracers.add_span_processor(spans)
        self._tracer = self._tracers.get_tracer(_SCOPE)
        self._counters: dict[Instrument, Counter] = {}
        self._histograms: dict[Instrument, Histogram] = {}
        self._register()

    def _register(self) -> None:
        meter = self._meters.get_meter(_SCOPE)
        for one in known.COUNTERS:
            self._counters[one] = meter.create_counter(one.name, one.unit, one.text)
        for one in known.HISTOGRAMS:
            self._histograms[one] = meter.create_histogram(
                one.name, one.unit, one.text, explicit_bucket_boundaries_advisory=list(one.bounds)
            )
        for one, value in _GAUGES.items():
            meter.create_observable_gauge(one.name, [self._of_tables(value)], one.unit, one.text)
        checks = known.CHECK_PASSED
        meter.create_observable_gauge(checks.name, [self._of_checks], checks.unit, checks.text)
        beats = known.DAEMON_HEARTBEAT
        meter.create_observable_gauge(beats.name, [self._of_daemons], beats.unit, beats.text)

    def _of_tables(
        self, value: Callable[[TableFigures, float], float | None]
    ) -> Callable[[CallbackOptions], Iterator[Observation]]:
        def observe(_options: CallbackOptions) -> Iterator[Observation]:
            now = time.time()
            for table, figures in self.book.tables().items():
                found = value(figures, now)
                if found is not None:
                    yield Observation(found, {"table": table})

        return observe

    def _of_checks(self, _options: CallbackOptions) -> Iterator[Observation]:
        for (table, check), passed in self.book.checks().items():
            yield Observation(int(passed), {"table": table, "check": check})

    def _of_daemons(self, _options: CallbackOptions) -> Iterator[Observation]:
        asked = self.book.heartbeats
        for daemon, beat in (asked() if asked is not None else {}).items():
            yield Observation(beat, {"daemon": daemon})

    def add(self, counter: Instrument, value: float, labels: Mapping[str, str]) -> None:
        """Add to a counter."""
        self._counters[counter].add(value, labels)

    def observe(self, histogram: Instrument, value: float, labels: Mapping[str, str]) -> None:
        """Add a value to a histogram."""
        self._histograms[histogram].record(value, labels)

    @contextmanager
    def span(self, name: str, trace: int, attributes: Mapping[str, str], began_ns: int | None = None) -> Iterator[None]:
        """Time the block as a span. Of an error it has the code: a message may have more in it than is meant here."""
        if not self.traces:
            yield
            return
        token = _NEXT_TRACE.set(trace)
        try:
            opened = self._tracer.start_as_current_span(
                name, attributes=attributes, start_time=began_ns, record_exception=False, set_status_on_exception=False
            )
            with opened as span:
                try:
                    yield
                except BaseException as error:
                    code = error.code.value if isinstance(error, MirrorError) else type(error).__name__
                    span.set_status(Status(StatusCode.ERROR, code))
                    raise
        finally:
            _NEXT_TRACE.reset(token)

    def past_span(self, name: str, began_ns: int, ended_ns: int) -> None:
        """Add a span that has ended below the one that is open; times are nanoseconds since 1970."""
        if self.traces:
            below = set_span_in_context(get_current_span())
            self._tracer.start_span(name, below, start_time=began_ns).end(ended_ns)

    def annotate(self, name: str, value: str | int) -> None:
        """Add an attribute to the span that is open."""
        get_current_span().set_attribute(name, value)

    def close(self, seconds: float) -> None:
        """Export what is left, for so many seconds at most."""
        self._tracers.force_flush(int(seconds * 1000))
        self._tracers.shutdown()
        self._meters.shutdown(seconds * 1000)
