"""docs/metrics.md says what is exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config.errors import ConfigInvalid
from mirror_assets.config.load import parse_config
from mirror_assets.telemetry.instruments import INSTRUMENTS
from mirror_assets_tests.pages import DOCS, codes, table

_MINIMAL = "landing_zone: {path: ./landing}\ntables: {orders: {source: ./orders, keys: [order_id]}}\n"


def test_every_metric_is_in_the_table() -> None:
    told = [
        (codes(name)[0], tuple(codes(labels)), kind, text)
        for name, labels, kind, text in table(DOCS / "metrics.md", "Metrics")
    ]
    assert told == [(one.exposed, one.labels, one.kind.value, one.text) for one in INSTRUMENTS]


@pytest.mark.parametrize(
    "metrics",
    [
        "{prometheus: {port: 0}}",
        "{prometheus: {port: 70000}}",
        "{otlp: {endpoint: localhost:4318}}",
        "{otlp: {endpoint: 'http://user:word@localhost:4318'}}",
        "{otlp: {endpoint: 'http://localhost:4318?token=hunter2'}}",
        "{otlp: {headers: x}}",
    ],
)
def test_other_settings_are_refused(metrics: str) -> None:
    with pytest.raises(ConfigInvalid):
        parse_config(f"{_MINIMAL}metrics: {metrics}\n".encode(), Path("mirror.yaml"), {})


def test_nothing_is_exported_by_default() -> None:
    config = parse_config(_MINIMAL.encode(), Path("mirror.yaml"), {})
    assert (config.metrics.prometheus.port, config.metrics.otlp.endpoint) == (None, None)
