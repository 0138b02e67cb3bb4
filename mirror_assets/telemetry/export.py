"""Exports metrics and traces while a block runs. A failure to export is a warning and never stops the mirror."""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from mirror_assets.redaction import redacted
from mirror_assets.telemetry.instruments import SCOPE
from mirror_assets.telemetry.record import Telemetry, next_trace_id, table_gauges, use
from mirror_assets.telemetry.table_gauges import TableGauges

if TYPE_CHECKING:  # the SDK is optional, and takes time to import
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor

    from mirror_assets.telemetry.scrape_port import ScrapePort

_CLOSE_SECONDS = 5.0
_REQUEST_SECONDS = 5.0
# How often metrics are sent, unless OTEL_METRIC_EXPORT_INTERVAL says so.
_SEND_SECONDS = 15.0
_REPEAT_SECONDS = 600.0
# The SDK stops at 2,000 series a metric: 500 tables have nine checks each.
_MOST_SERIES = 100_000
_INSTALL = "pip install 'mirror-assets[metrics]'"


@dataclass(frozen=True)
class ExportTarget:
    """Where metrics go: a port to scrape, and an OTLP endpoint (HTTP) that also receives traces; None for neither.

    The port is opened on the address in OTEL_EXPORTER_PROMETHEUS_HOST, by default 127.0.0.1.
    """

    port: int | None = None
    endpoint: str | None = None


@contextmanager
def exporting(target: ExportTarget, warn: Callable[[str], None]) -> Iterator[None]:
    """Export while the block runs. An outer block of the same process continues to export in place of this one."""
    if (target.port is None and target.endpoint is None) or table_gauges() is not None:
        yield
        return
    handler, logger = _FirstOfEachKind(warn), logging.getLogger("opentelemetry")
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    close = _open(target, warn)
    try:
        yield
    finally:
        close()
        logger.removeHandler(handler)
        logger.propagate = propagates


def _open(target: ExportTarget, warn: Callable[[str], None]) -> Callable[[], None]:
    """Start to export, and return a function that ends it."""
    try:
        readers, spans, port = _exporters(target, warn)
        telemetry, shutdown = _providers(readers, spans)
    except ImportError as error:
        warn(f"metrics are off because the package {error.name} is missing: {_INSTALL}")
        return lambda: None
    except Exception as error:  # noqa: BLE001 such as a variable OTEL_… with a value that the SDK refuses
        warn(redacted(f"metrics are off: {type(error).__name__}: {error}"))
        return lambda: None
    if port is not None:
        port.open()
    use(telemetry)

    def close() -> None:
        use(None)
        if port is not None:
            port.close()
        # The SDK exceeds its own time limit when a collector doesn't respond.
        last = threading.Thread(target=shutdown, name="metrics-close", daemon=True)
        last.start()
        last.join(_CLOSE_SECONDS)

    return close


def _exporters(
    target: ExportTarget, warn: Callable[[str], None]
) -> tuple[list[MetricReader], SpanProcessor | None, ScrapePort | None]:
    from opentelemetry.sdk import metrics as sdk
    from opentelemetry.sdk.metrics.export import CardinalityLimits

    limits: CardinalityLimits = dict.fromkeys((sdk.Counter, sdk.Histogram, sdk.ObservableGauge), _MOST_SERIES)
    readers, spans, port = list["MetricReader"](), None, None
    if target.port is not None:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from prometheus_client import CollectorRegistry, ProcessCollector

        from mirror_assets.telemetry.scrape_port import ScrapePort

        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        readers.append(PrometheusMetricReader(scope_info_enabled=False, registry=registry, cardinality_limits=limits))
        port = ScrapePort(registry, os.environ.get("OTEL_EXPORTER_PROMETHEUS_HOST") or "127.0.0.1", target.port, warn)
    if target.endpoint is not None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        # Headers, such as those of a sign-in, come from the variable OTEL_EXPORTER_OTLP_HEADERS. The reader is created
        # last: its thread would not end if a constructor before it failed.
        base = target.endpoint.rstrip("/")
        spans = BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", timeout=_REQUEST_SECONDS))
        sender = OTLPMetricExporter(f"{base}/v1/metrics", timeout=_REQUEST_SECONDS)
        interval = None if "OTEL_METRIC_EXPORT_INTERVAL" in os.environ else _SEND_SECONDS * 1000
        readers.append(
            PeriodicExportingMetricReader(sender, interval, _REQUEST_SECONDS * 1000, cardinality_limits=limits)
        )
    return readers, spans, port


def _providers(readers: list[MetricReader], spans: SpanProcessor | None) -> tuple[Telemetry, Callable[[], None]]:
    """Return telemetry on providers of its own, and a function that exports the rest and shuts them down.

    The process's global providers are not touched: they can be set only once. OTEL_SERVICE_NAME and
    OTEL_RESOURCE_ATTRIBUTES override the attributes that identify this process.
    """
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.trace import NoOpTracerProvider

    class SliceTraceIds(RandomIdGenerator):
        """Gives a root span the id of its slice's trace."""

        def generate_trace_id(self) -> int:
            return next_trace_id.get() or super().generate_trace_id()

        def is_trace_id_random(self) -> bool:
            return False

    instance = f"{platform.node()}:{os.getpid()}"
    own = {
        "service.name": "mirror-assets",
        "service.version": version("mirror-assets"),
        "service.instance.id": instance,
    }
    resource = Resource.create(own).merge(OTELResourceDetector().detect())
    # The end of the block shuts them down, not the end of the process.
    meters = MeterProvider(readers, resource, shutdown_on_exit=False)
    tracers = TracerProvider(resource=resource, id_generator=SliceTraceIds(), shutdown_on_exit=False)
    if spans is not None:
        tracers.add_span_processor(spans)
    tables = TableGauges()
    tables.register(meters.get_meter(SCOPE))

    def shutdown() -> None:
        tracers.force_flush(int(_CLOSE_SECONDS * 1000))
        tracers.shutdown()
        meters.shutdown(_CLOSE_SECONDS * 1000)

    return Telemetry(meters, tracers if spans is not None else NoOpTracerProvider(), tables), shutdown


class _FirstOfEachKind(logging.Handler):
    """Passes on the SDK's messages: the first line of each kind, every ten minutes."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._warn = warn
        self._next: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the message on, unless one of its kind was passed on recently."""
        now = time.monotonic()
        if now >= self._next.get(record.name, 0.0):
            self._next[record.name] = now + _REPEAT_SECONDS
            self._warn(redacted(f"metrics: {record.getMessage().splitlines()[0]}"))
