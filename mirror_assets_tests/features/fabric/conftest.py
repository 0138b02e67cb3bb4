"""The product's client of the local Fabric."""

from __future__ import annotations

from uuid import UUID

import pytest

from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.features.fabric.database import Workspace
from mirror_assets_tests.worlds.fabric.loopback import LoopbackFabric
from mirror_assets_tests.worlds.onelake import LoopbackOneLake


def place_of(fabric: LoopbackFabric) -> Workspace:
    """Return the workspace of the local Fabric."""
    return Workspace(UUID(fabric.interface.workspace), fabric.url, fabric.ca)


@pytest.fixture
def client(fabric: LoopbackFabric, onelake: LoopbackOneLake) -> FabricClient:
    """Its client, with azure-identity's real credential."""
    return FabricClient(place_of(fabric), onelake.credential())
