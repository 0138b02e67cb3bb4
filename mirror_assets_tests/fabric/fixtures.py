"""The loopback Fabric as fixtures; its tokens are those of the loopback OneLake."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mirror_assets.fabric.client import FabricClient
from mirror_assets_tests.fabric.loopback import LoopbackFabric
from mirror_assets_tests.onelake.server import LoopbackOneLake


@pytest.fixture(scope="session")
def fabric_server(
    onelake_server: LoopbackOneLake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LoopbackFabric]:
    """The run's only server."""
    with LoopbackFabric(tmp_path_factory.mktemp("fabric"), onelake_server.entra) as server:
        yield server


@pytest.fixture
def fabric(fabric_server: LoopbackFabric) -> LoopbackFabric:
    """The server with an empty workspace, without faults, and with an empty log."""
    fabric_server.reset()
    return fabric_server


@pytest.fixture
def client(fabric: LoopbackFabric, onelake: LoopbackOneLake) -> FabricClient:
    """The product's client of that workspace, with azure-identity's real credential."""
    return FabricClient(fabric.place, onelake.credential())
