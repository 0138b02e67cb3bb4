"""Fixtures of the replicator's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets_tests.standin.publisher import Publisher


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    """A fresh landing zone and mirror."""
    return Publisher(tmp_path)
