"""The bench, and nothing that waits."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from mirror_assets_tests.worlds.faults.bench import Bench
from mirror_assets_tests.worlds.onelake import LoopbackOneLake


@pytest.fixture
def bench(onelake: LoopbackOneLake, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A new item, where files above 1,000 bytes are uploaded in chunks of that size, and nobody waits for anything."""
    monkeypatch.setattr("mirror_assets.zones.onelake.onelake_store._WHOLE", 1000)
    monkeypatch.setattr("mirror_assets.zones.onelake.onelake_store._CHUNK", 1000)
    # The SDK sleeps a second before it reads a cut body again, whatever its retry settings.
    monkeypatch.setattr("azure.storage.blob._download.time", SimpleNamespace(sleep=lambda _: None))
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return Bench(onelake)
