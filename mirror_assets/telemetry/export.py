"""Switches the export of metrics and traces on for a block. What goes wrong in it never stops the mirror."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror_assets.redaction import redacted
from mirror_assets.telemetry.record import is_on, use

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor

    from mirror_assets.telemetry.scrape_port import ScrapePort

_CLOSE_SECONDS = 5.0
_REQUEST_SECONDS = 5.0
_REPEATED_SECONDS = 600.0
_INSTALL = "pip install 'mirror-assets[metrics]'"


@dataclass(frozen=True)
class Export:
    """Where metrics go: a port to scrape, and an endpoint for OTLP (HTTP) that also gets traces; None for neither."""

    host: str = "127.0.0.1"
    port: int | None = None
    endpoint: str | None = None
    every_seconds: float = 15.0

    @property
    def is_on(self) -> bool:
        """Whether anything is exported."""
        return self.port is not None or self.endpoint is not None


@contextmanager
def exporting(export: Export, warn: Callable[[str], None]) -> Iterator[None]:
    """Export in the block. Inside another such block that goes on, and missing packages are a warning."""
    if not export.is_on or is_on():
        yield
        return
    with _told_once(warn):
        close = _open(export, warn)
        try:
            yield
        finally:
            if close is not None:
                close()


def _open(export: Export, warn: Callable[[str], None]) -> Callable[[], None] | None:
    """Begin to export; return what ends it, or None where it can't begin."""
    try:
        from mirror_assets.telemetry.otel import OpenTelemetryRecorder

        readers, spans, port = _parts(export, warn)
        recorder = OpenTelemetryRecorder(readers, spans)
    except ImportError as error:
        warn(f"metrics are off, for a package is missing ({error.name}): {_INSTALL}")
        return None
    except Exception as error:  # noqa: BLE001 such as a variable OTEL_… that the SDK does not understand
        warn(redacted(f"metrics are off: {type(error).__name__}: {error}"))
        return None
    if port is not None:
        port.open()
    use(recorder)

    def close() -> None:
        use(None)
        if port is not None:
            port.close()
        # The SDK waits for a collector that does not answer several times over, however little time it is given.
        last = threading.Thread(target=recorder.close, args=(_CLOSE_SECONDS,), name="metrics-close", daemon=True)
        last.start()
        last.join(_CLOSE_SECONDS)

    return close


def _parts(
    export: Export, warn: Callable[[str], None]
) -> tuple[list[MetricReader], SpanProcessor | None, ScrapePort | None]:
    readers: list[MetricReader] = []
    spans: SpanProcessor | None = None
    port: ScrapePort | None = None
    if export.port is not None:
        found, port = _scraped(export.host, export.port, warn)
        readers.append(found)
    if export.endpoint is not None:
        reader, spans = _otlp(export.endpoint, export.every_seconds)
        readers.append(reader)
    return readers, spans, port


def _otlp(endpoint: str, every_seconds: float) -> tuple[MetricReader, SpanProcessor]:
    """Return what sends metrics and spans. Headers, such as those of a sign-in, are in OTEL_EXPORTER_OTLP_HEADERS."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from mirror_assets.telemetry.otel import SERIES_LIMITS

    base = endpoint.rstrip("/")
    # Last comes what starts a thread that nothing would end, should one of these be refused.
    spans = BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", timeout=_REQUEST_SECONDS))
    sender = OTLPMetricExporter(f"{base}/v1/metrics", timeout=_REQUEST_SECONDS)
    reader = PeriodicExportingMetricReader(
        sender, every_seconds * 1000, _REQUEST_SECONDS * 1000, cardinality_limits=SERIES_LIMITS
    )
    return reader, spans


def _scraped(host: str, port: int, warn: Callable[[str], None]) -> tuple[MetricReader, ScrapePort]:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from prometheus_client import CollectorRegistry, ProcessCollector

    from mirror_assets.telemetry.otel import SERIES_LIMITS
    from mirror_assets.telemetry.scrape_port import ScrapePort

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    reader = PrometheusMetricReader(scope_info_enabled=False, registry=registry, cardinality_limits=SERIES_LIMITS)
    return reader, ScrapePort(registry, host, port, warn)


@contextmanager
def _told_once(warn: Callable[[str], None]) -> Iterator[None]:
    """Hand what the SDK logs to `warn`, the first line of each kind every ten minutes, and to nobody else."""
    handler, logger = _Told(warn), logging.getLogger("opentelemetry")
    before = logger.propagate
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


class _Told(logging.Handler):
    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._warn = warn
        self._next: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the message, unless one of its kind was told lately."""
        now = time.monotonic()
        if now < self._next.get(record.name, 0.0):
            return
        self._next[record.name] = now + _REPEATED_SECONDS
        self._warn(redacted(f"metrics: {record.getMessage().splitlines()[0]}"))
