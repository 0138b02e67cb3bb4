"""Opens the mirror that mirror.yaml names: a mirrored database in Fabric, or the tables of the local stand-in."""

from __future__ import annotations

from functools import cache

from mirror_assets.config import Config, FabricWorkspace
from mirror_assets.fabric.client import FabricClient
from mirror_assets.fabric.database import Workspace
from mirror_assets.fabric.mirror import FabricMirror
from mirror_assets.fabric.monitoring import Mirror
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.storage import Store
from mirror_assets.storage.credentials import CredentialKind, credential_of


def open_mirror(config: Config, store: Store) -> Mirror:
    """The mirror of the landing zone in `store`; nothing is asked of it yet. Raises CredentialIncomplete."""
    fabric = config.mirror.fabric
    if fabric is None:
        return stand_in(config, store)
    tables = fabric.tables(config.landing_zone.onelake)
    return FabricMirror(open_fabric(fabric), fabric.item, store, tables.abfss)


def stand_in(config: Config, store: Store) -> LocalReplicator:
    """The local stand-in for Fabric's replicator."""
    return LocalReplicator(store, config.mirror.path)


def open_fabric(workspace: FabricWorkspace) -> FabricClient:
    """The process's only client for this workspace. Raises CredentialIncomplete."""
    return _shared_client(workspace.place, workspace.credential)


@cache
def _shared_client(workspace: Workspace, kind: CredentialKind) -> FabricClient:
    return FabricClient(workspace, credential_of(kind, workspace.ca_bundle))
