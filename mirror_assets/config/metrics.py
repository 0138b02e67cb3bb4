"""Where a run exports metrics and traces; nowhere by default."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from mirror_assets.config.setting_values import Section


def _collector(text: str) -> str:
    """Return a collector's address. Raises ValueError for another text, and for one that holds a secret."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected an address such as http://localhost:4318")
    if "@" in parts.netloc or parts.query:
        raise ValueError("it must not hold a user, a password or a token: OTEL_EXPORTER_OTLP_HEADERS has those")
    return text


_Collector = Annotated[str, AfterValidator(_collector)]
_Port = Annotated[int, Field(ge=1, le=65_535)]


class PrometheusConfig(Section):
    """The port that runs that stay serve for Prometheus."""

    port: _Port | None = Field(default=None, description="Port to scrape; null: none. Batch n of several has port + n.")


class OtlpConfig(Section):
    """The collector that every run sends metrics and traces to."""

    endpoint: _Collector | None = Field(default=None, description="Its URL, by OTLP over HTTP; null: none.")


class MetricsConfig(Section):
    """What is exported."""

    prometheus: PrometheusConfig = Field(default_factory=PrometheusConfig, description="A port to scrape.")
    otlp: OtlpConfig = Field(default_factory=OtlpConfig, description="A collector that gets metrics and traces.")
