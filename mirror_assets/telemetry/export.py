"""Exports metrics and traces while a block runs. A failure to export is a warning and never stops the mirror.

Prometheus scrapes a port; a process that finds the port in use waits until it is free.
"""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from mirror_assets.redaction import redacted
from mirror_assets.telemetry.record import SCOPE, Telemetry, next_trace_id, table_gauges, use
from mirror_assets.telemetry.table_gauges import TableGauges

if TYPE_CHECKING:  # the SDK is optional, and takes time to import
    from wsgiref.simple_server import WSGIServer

    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor
    from prometheus_client import CollectorRegistry

_CLOSE_SECONDS = 5.0
_REQUEST_SECONDS = 5.0
# How often metrics are sent, unless OTEL_METRIC_EXPORT_INTERVAL says so.
_SEND_SECONDS = 15.0
_REPEAT_SECONDS = 600.0
# How often a process tries to get a port that another one has.
_AGAIN_SECONDS = 2.0
# The SDK stops at 2,000 series a metric: 500 tables have nine checks each.
_MOST_SERIES = 100_000
_INSTALL = "pip install 'mirror-assets[metrics]'"


@contextmanager
def exporting(warn: Callable[[str], None], *, port: int | None = None, endpoint: str | None = None) -> Iterator[None]:
    """Export while the block runs. An outer block of the same process continues to export in place of this one.

    Prometheus scrapes the port, which is opened on the address in OTEL_EXPORTER_PROMETHEUS_HOST, by default 127.0.0.1.
    The OTLP endpoint (HTTP) also receives traces. Nothing is exported without either.
    """
    if (port is None and endpoint is None) or table_gauges() is not None:
        yield
        return
    handler, logger = _FirstOfEachKind(warn), logging.getLogger("opentelemetry")
    with ExitStack() as opened:
        opened.callback(setattr, logger, "propagate", logger.propagate)
        opened.callback(logger.removeHandler, handler)
        logger.addHandler(handler)
        logger.propagate = False
        try:
            _open(opened, warn, port, endpoint)
        except ImportError as error:
            warn(f"metrics are off because the package {error.name} is missing: {_INSTALL}")
        except Exception as error:  # noqa: BLE001 such as a variable OTEL_… with a value that the SDK refuses
            warn(redacted(f"metrics are off: {type(error).__name__}: {error}"))
        yield


def _open(opened: ExitStack, warn: Callable[[str], None], port: int | None, endpoint: str | None) -> None:
    """Start to export until the stack closes, through providers of our own.

    The process's global providers are not touched: they can be set only once. OTEL_SERVICE_NAME and
    OTEL_RESOURCE_ATTRIBUTES override the attributes that identify this process.
    """
    readers, spans, registry = _readers(port, endpoint)
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

    own = {
        "service.name": "mirror-assets",
        "service.version": version("mirror-assets"),
        "service.instance.id": f"{platform.node()}:{os.getpid()}",
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

    # The SDK exceeds its own time limit when a collector doesn't respond.
    last = threading.Thread(target=shutdown, name="metrics-close", daemon=True)
    opened.callback(last.join, _CLOSE_SECONDS)
    opened.callback(last.start)
    if port is not None and registry is not None:
        opened.callback(_serve(registry, os.environ.get("OTEL_EXPORTER_PROMETHEUS_HOST") or "127.0.0.1", port, warn))
    opened.callback(use, None)
    use(Telemetry(meters, tracers if spans is not None else NoOpTracerProvider(), tables))


def _readers(
    port: int | None, endpoint: str | None
) -> tuple[list[MetricReader], SpanProcessor | None, CollectorRegistry | None]:
    """Return the readers of metrics, the processor that sends spans, and the registry that a port serves."""
    from opentelemetry.sdk import metrics as sdk
    from opentelemetry.sdk.metrics.export import CardinalityLimits

    limits: CardinalityLimits = dict.fromkeys((sdk.Counter, sdk.Histogram, sdk.ObservableGauge), _MOST_SERIES)
    readers, spans, registry = list["MetricReader"](), None, None
    if port is not None:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from prometheus_client import CollectorRegistry, ProcessCollector

        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        readers.append(PrometheusMetricReader(scope_info_enabled=False, registry=registry, cardinality_limits=limits))
    if endpoint is not None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        # Headers, such as those of a sign-in, come from the variable OTEL_EXPORTER_OTLP_HEADERS. The reader is created
        # last: its thread would not end if a constructor before it failed.
        base, timeout = endpoint.rstrip("/"), _REQUEST_SECONDS * 1000
        spans = BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", timeout=_REQUEST_SECONDS))
        sender = OTLPMetricExporter(f"{base}/v1/metrics", timeout=_REQUEST_SECONDS)
        interval = None if "OTEL_METRIC_EXPORT_INTERVAL" in os.environ else _SEND_SECONDS * 1000
        readers.append(PeriodicExportingMetricReader(sender, interval, timeout, cardinality_limits=limits))
    return readers, spans, registry


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


def _serve(registry: CollectorRegistry, host: str, port: int, warn: Callable[[str], None]) -> Callable[[], None]:
    """Serve the registry, and return a function that releases the port.

    If another process has the port, warns once and retries in a background thread until the port is free.
    """
    from prometheus_client import start_http_server

    over, servers = threading.Event(), list["WSGIServer"]()

    def start() -> str | None:
        """Start the server; return the reason if that fails."""
        try:
            servers.append(start_http_server(port, host, registry)[0])
        except (OSError, OverflowError, ValueError) as error:  # the latter two for invalid ports and hosts
            return getattr(error, "strerror", None) or str(error)
        return None

    def retry() -> None:
        while not over.wait(_AGAIN_SECONDS) and start() is not None:
            pass

    waiting = threading.Thread(target=retry, name="metrics-port", daemon=True)
    if (why := start()) is not None:
        warn(
            f"metrics are not served at {host}:{port} ({why}): another process may have the port; retrying until this "
            "process ends"
        )
        waiting.start()

    def close() -> None:
        over.set()
        if waiting.is_alive():
            waiting.join()
        for server in servers:
            server.shutdown()
            server.server_close()

    return close
