"""A collector on loopback: it takes metrics and spans by OTLP over HTTP, and keeps them."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """What has come in so far. With a `status` other than 200 it refuses everything."""

    status: int = 200
    metrics: dict[str, Metric] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    _server: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        """Listen."""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if collector.status == 200:
                    collector.take(self.path, body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address, as `metrics.otlp.endpoint` takes it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: bytes) -> None:
        """Keep a request."""
        self.bodies.append(body)
        if path == "/v1/metrics":
            for of in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.resources.append(attributes(of.resource.attributes))
                self.metrics |= {metric.name: metric for scope in of.scope_metrics for metric in scope.metrics}
        else:
            assert path == "/v1/traces"
            for traced in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [span for scope in traced.scope_spans for span in scope.spans]

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


def exposed(metric: Metric) -> str:
    """Return the metric's name in Prometheus, without the endings of a histogram's series."""
    unit = {"s": "_seconds", "By": "_bytes"}.get(metric.unit, "")
    return f"{metric.name.replace('.', '_')}{unit}{'_total' if metric.HasField('sum') else ''}"


def attributes(found: object) -> dict[str, str]:
    """Return attributes by name."""
    return {one.key: one.value.string_value for one in found if isinstance(one, KeyValue)}  # type: ignore[attr-defined]
