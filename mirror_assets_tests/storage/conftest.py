"""The stores that the contract holds for; another store joins by one line in STORES."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.storage import LocalStore, Store
from mirror_assets_tests.storage.memory import MemoryStore

STORES: dict[str, Callable[[Path], Store]] = {
    "local": lambda folder: LocalStore(folder / "zone"),
    "memory": lambda _: MemoryStore(),
}


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    return STORES[request.param](tmp_path)


@pytest.fixture
def local(tmp_path: Path) -> LocalStore:
    """An empty store on this machine's disk."""
    return LocalStore(tmp_path / "zone")
