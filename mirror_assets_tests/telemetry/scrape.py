"""Scrapes an endpoint as Prometheus does."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack

from prometheus_client.parser import text_string_to_metric_families

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def free_port(neighbours: int = 0) -> int:
    """Return a port that nobody listens on, and nobody on so many of the next ones."""
    while True:
        with ExitStack() as held:
            found = held.enter_context(socket.socket())
            found.bind(("127.0.0.1", 0))
            port = int(found.getsockname()[1])
            try:
                for neighbour in range(port + 1, port + 1 + neighbours):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", neighbour))
            except (OSError, OverflowError):
                continue
            return port


def scrape(port: int) -> Series:
    """Return the endpoint's series by name and labels; none while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return {}
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(series: Series, name: str, **labels: str) -> float | None:
    """Return the value of a series by its name and exact labels."""
    return series.get((name, frozenset(labels.items())))


def wait_for(port: int, is_there: Callable[[Series], bool], seconds: float = 90.0) -> Series:
    """Scrape until it is there; return that scrape."""
    deadline = time.monotonic() + seconds
    series: Series = {}
    while time.monotonic() < deadline:
        series = scrape(port)
        if series and is_there(series):
            return series
        time.sleep(0.3)
    raise AssertionError(f"not there after {seconds} s: {sorted(name for name, _ in series)}")
