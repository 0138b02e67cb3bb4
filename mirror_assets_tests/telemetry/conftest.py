"""A port that serves what this process records, and a collector."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from mirror_assets.telemetry.export import exporting
from mirror_assets_tests.telemetry.collector import Collector
from mirror_assets_tests.telemetry.scrape import free_port

# The threads of OpenTelemetry's SDK, and the one that shuts it down.
_EXPORTERS = ("OtelBatchSpanRecordProcessor", "OtelPeriodicExportingMetricReader", "metrics-close")
_LONGEST_EXPORT_SECONDS = 20.0


@pytest.fixture
def port() -> Iterator[int]:
    found = free_port()
    with exporting(pytest.fail, port=found):
        yield found


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def exports_of_earlier_tests_have_ended() -> None:
    """Wait for exporters that a test of any folder has left: they retry, and log into the next test's messages."""
    for thread in threading.enumerate():
        if thread.name in _EXPORTERS:
            thread.join(_LONGEST_EXPORT_SECONDS)
