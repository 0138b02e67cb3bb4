"""The local stand-in for Fabric's replicator, as strict as Microsoft's rules, and reconciling mirror and source."""

from mirror_assets.replicator.local import LocalReplicator
from mirror_assets.replicator.status import TableStatus

__all__ = ["LocalReplicator", "TableStatus"]
