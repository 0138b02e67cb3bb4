"""The product's client of the local Fabric."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from azure.core.credentials import TokenCredential

from mirror_assets.features.fabric.client import FabricClient
from mirror_assets_tests.worlds.fabric.loopback import LoopbackFabric
from mirror_assets_tests.worlds.onelake import LoopbackOneLake


def client_of(
    fabric: LoopbackFabric, credential: TokenCredential, workspace: UUID | None = None, ca: Path | None = None
) -> FabricClient:
    """Return a client of the local Fabric; by default, of its workspace, and with its CA."""
    return FabricClient(workspace or UUID(fabric.interface.workspace), credential, fabric.url, ca or fabric.ca)


@pytest.fixture
def client(fabric: LoopbackFabric, onelake: LoopbackOneLake) -> FabricClient:
    """Its client, with azure-identity's real credential."""
    return client_of(fabric, onelake.credential())
