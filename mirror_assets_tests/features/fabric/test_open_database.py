"""The clients of workspaces."""

from __future__ import annotations

from uuid import uuid4

from mirror_assets.features.fabric.fabric_settings import FabricConfig
from mirror_assets.features.fabric.open_database import open_fabric
from mirror_assets.lakes.azure_identity import CredentialKind


def test_one_client_serves_a_process() -> None:
    place, workspace = FabricConfig(), uuid4()
    assert open_fabric(place, workspace) is open_fabric(place, workspace)
    for other in (FabricConfig(credential=CredentialKind.MANAGED_IDENTITY), FabricConfig(endpoint="https://x")):
        assert open_fabric(place, workspace) is not open_fabric(other, workspace)
    assert open_fabric(place, workspace) is not open_fabric(place, uuid4())
