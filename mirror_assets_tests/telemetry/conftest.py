"""A port that serves what this process records, and a collector."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mirror_assets.telemetry.export import exporting
from mirror_assets_tests.telemetry.collector import Collector
from mirror_assets_tests.telemetry.scrape import free_port


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
