"""docs/metrics.md describes the exported metrics, and settings that can't be right are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.load import parse_config
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.pages import DOCS, codes, table
from mirror_assets_tests.telemetry.recorded import ExportedMetric, exported_metrics

_MINIMAL = "landing_zone: {path: ./landing}\ntables: {orders: {source: ./orders, keys: [order_id]}}\n"


def test_the_table_has_every_metric() -> None:
    documented = {
        codes(name)[0]: ExportedMetric(kind, frozenset(codes(labels)), text)
        for name, labels, kind, text in table(DOCS / "metrics.md", "Metrics")
    }
    assert documented == exported_metrics()


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
    with raises_row(MISTAKES):
        parse_config(f"{_MINIMAL}metrics: {metrics}\n".encode(), Path("mirror.yaml"), {})
