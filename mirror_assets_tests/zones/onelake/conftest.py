"""Nothing here waits."""

from __future__ import annotations

from types import SimpleNamespace

import pytest


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK sleeps a second before it reads a cut body again, whatever its retry settings."""
    monkeypatch.setattr("azure.storage.blob._download.time", SimpleNamespace(sleep=lambda _: None))
