"""The stores that the contract holds for."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.lakes.azure_identity import CredentialKind
from mirror_assets.zones import LocalStore, Store
from mirror_assets.zones.onelake.clients import shared_clients
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress
from mirror_assets_tests.worlds.onelake.stores import loopback_store
from mirror_assets_tests.zones.memory import MemoryStore

LIVE_URL = "MIRROR_LIVE_ONELAKE_URL"


@pytest.fixture(params=["local", "memory", "loopback", pytest.param("live", marks=pytest.mark.live)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind; `live` is a folder of a real item, for `pytest -m live`."""
    kind: str = request.param
    if kind == "loopback":
        server = request.getfixturevalue("onelake")
        return loopback_store(server, server.new_item())
    if kind == "live":
        return _live_store()
    return LocalStore(tmp_path / "zone") if kind == "local" else MemoryStore()


@pytest.fixture
def local(tmp_path: Path) -> LocalStore:
    """An empty store on this machine's disk."""
    return LocalStore(tmp_path / "zone")


def _live_store() -> OneLakeStore:
    """A new folder below the landing zone's scratch folder, which Fabric ignores."""
    url = os.environ.get(LIVE_URL)
    if not url:
        pytest.skip(f"{LIVE_URL} names no landing zone")
    zone = OneLakeAddress.parse(url)
    address = replace(zone, folder=f"{zone.folder}/_scratchPad/contract-{uuid.uuid4().hex}")
    return OneLakeStore(shared_clients(address, CredentialKind.DEFAULT, None, None))
