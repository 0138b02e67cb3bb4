"""Records every metric once, and returns them as Prometheus has them."""

from __future__ import annotations

import time
import urllib.request
from dataclasses import dataclass
from functools import cache

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mirror_assets.telemetry import record
from mirror_assets.telemetry.export import exporting
from mirror_assets.telemetry.record import SliceWork, Stage
from mirror_assets.telemetry.scope import table_scope
from mirror_assets.telemetry.table_gauges import TableGauges
from mirror_assets_tests.telemetry.scrape import free_port

WORK = SliceWork("/zone", "shop.orders", "1.2-3")


@dataclass(frozen=True)
class ExportedMetric:
    """A metric's kind, labels and help text."""

    kind: str
    labels: frozenset[str]
    text: str


def gauges() -> TableGauges:
    """Return the gauges of tables, which are exported."""
    found = record.table_gauges()
    assert found is not None
    return found


def record_everything() -> None:
    """Record one slice, and each other metric once."""
    record.export_tables(["shop.orders", "shop.never_polled"])
    gauges().set_source("shop.orders", 7, 1, time.time() - 60)
    with table_scope("shop.orders"):
        with record.planning("shop.orders"):
            time.sleep(0.01)
        with record.slice_span(WORK):
            for name in (Stage.STAGE, Stage.CHECK, Stage.PUBLISH):
                with record.stage_span(name, WORK):
                    record.set_attempt("a1")
            record.record_published(
                "shop.orders",
                "changes",
                files=1,
                size=100,
                rows={"inserts": 5, "deletes": 0},
                committed=time.time() - 3,
                requests=18,
                capacity_seconds=26.1,
                unproved=1,
                by_files=2,
            )
    gauges().set_covered("shop.orders", 3, time.time() - 30)
    record.record_check("shop.orders", "key_presence", passed=True)
    record.record_check("shop.orders", "row_order", passed=False)
    record.record_mirrored("shop.orders", "Replicating", 5)
    record.count_failure("shop.orders", "checks_failed")
    record.count_request("onelake.example", "PUT", "201")
    record.record_applied([WORK], time.time_ns() - 10**9)
    record.export_heartbeats(lambda: {"SENSOR": time.time() - 400})


@cache
def exported_metrics() -> dict[str, ExportedMetric]:
    """Return this project's metrics by their names in Prometheus, without the endings of a histogram's series."""
    port = free_port()
    with exporting(pytest.fail, port=port):
        record_everything()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: ExportedMetric(
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels) - {"le"},
            family.documentation,
        )
        for family in families
        if family.name.startswith("mirror_")
    }
