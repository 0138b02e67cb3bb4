"""A landing zone on disk, without waiting for the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_assets.zones import LocalStore


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    """An empty landing zone; durability has tests of its own and would only cost time here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return LocalStore(tmp_path / "zone")
