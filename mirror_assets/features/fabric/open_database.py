"""Opens the mirrored database that the settings name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING
from uuid import UUID

from mirror_assets.config.errors import Problem
from mirror_assets.config.model import Config
from mirror_assets.feature import MirrorPlace
from mirror_assets.features.fabric.database import Workspace
from mirror_assets.features.fabric.fabric_settings import FabricConfig, FabricMirrorSettings
from mirror_assets.lakes.azure_identity import CredentialKind, credential_of
from mirror_assets.monitoring import Mirror
from mirror_assets.zones import Store
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress, spark_reach

if TYPE_CHECKING:  # it loads a part of Azure's SDK
    from mirror_assets.features.fabric.client import FabricClient

_PORTAL = "https://app.fabric.microsoft.com/groups"
_NO_IDENTITY = (
    "Spark can't read the mirror with the credential `default`; name client_secret, managed_identity or "
    "workload_identity"
)


def fabric_place(config: Config) -> MirrorPlace | None:
    """Return the mirrored database at the landing zone's endpoint; None without its settings."""
    fabric, tables = FabricMirrorSettings.of(config.mirror).fabric, folder_of_tables(config)
    if fabric is None or tables is None:
        return None

    def opened(store: Store) -> Mirror:
        from mirror_assets.features.fabric.fabric_mirror import FabricMirror

        client = open_fabric(fabric, UUID(tables.workspace))
        return FabricMirror(client, UUID(tables.item), store, tables.abfss, fabric.default_schema)

    is_unreadable = fabric.credential is CredentialKind.DEFAULT
    return MirrorPlace(
        "fabric",
        f"[Fabric's portal]({_PORTAL}/{tables.workspace}); the job `checks` records what has changed",
        tables.abfss,
        tables.url,
        fabric.default_schema,
        fabric.credential.value,
        opened,
        None if is_unreadable else spark_reach(tables, fabric.credential),
        Problem("mirror.fabric.credential", _NO_IDENTITY) if is_unreadable else None,
    )


def folder_of_tables(config: Config) -> OneLakeAddress | None:
    """Return the folder of the mirrored tables, in the item of the landing zone; None if that is not on OneLake."""
    zone = config.landing_zone.onelake
    return None if zone is None else replace(zone.address, folder="Tables")


def open_fabric(fabric: FabricConfig, workspace: UUID) -> FabricClient:
    """Return the client of this workspace, one for the process. Raises credential_incomplete."""
    return _shared_client(Workspace(workspace, fabric.endpoint, fabric.ca_bundle), fabric.credential)


@cache
def _shared_client(workspace: Workspace, kind: CredentialKind) -> FabricClient:
    from mirror_assets.features.fabric.client import FabricClient

    return FabricClient(workspace, credential_of(kind, workspace.ca_bundle))
