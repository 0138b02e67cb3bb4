"""Fixtures of the alerts' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.docs_links import DOCS_VARIABLE
from mirror_assets_tests.features.alerts.alerting import Deployment
from mirror_assets_tests.web import WebReceiver, web_receiver


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebReceiver]:
    with web_receiver() as started:
        monkeypatch.setenv("HOOK_URL", started.url)
        monkeypatch.setenv(DOCS_VARIABLE, "https://docs.example")
        yield started


@pytest.fixture
def deployment(tmp_path: Path, receiver: WebReceiver) -> Iterator[Deployment]:
    assert receiver.url
    with dg.instance_for_test() as instance:
        yield Deployment(tmp_path, instance)
