"""Where a run exports metrics and traces; nowhere by default."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from mirror_assets.settings import Section


def _collector(text: str) -> str:
    """Return a collector's address. Raises ValueError for another text, and for one that contains a secret."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected an address such as http://localhost:4318")
    if "@" in parts.netloc or parts.query:
        raise ValueError("it must not contain a user, a password or a token: set them in OTEL_EXPORTER_OTLP_HEADERS")
    return text


class PrometheusConfig(Section):
    """The port that resident runs serve for Prometheus."""

    port: Annotated[int, Field(ge=1, le=65_535)] | None = Field(
        default=None, description="Port to scrape; null: none. Batch n (from 0) has port + n."
    )


class OtlpConfig(Section):
    """The collector that every run sends metrics and traces to."""

    endpoint: Annotated[str, AfterValidator(_collector)] | None = Field(
        default=None, description="Its address, for OTLP over HTTP; null: none."
    )


class MetricsConfig(Section):
    """The export of metrics and traces."""

    prometheus: PrometheusConfig = Field(default_factory=PrometheusConfig, description="Port to scrape.")
    otlp: OtlpConfig = Field(default_factory=OtlpConfig, description="Collector of metrics and traces.")
