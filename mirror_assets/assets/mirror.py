"""`mirror/...`: the replicated table on the other side, observed."""

from __future__ import annotations

import dagster as dg

from mirror_assets.assets.items import MetadataItem
from mirror_assets.assets.names import Kind, asset_key, group_name
from mirror_assets.config import TableSettings
from mirror_assets.fabric.monitoring import MonitoredTable


def mirror_asset(table: TableSettings) -> dg.AssetSpec:
    """The external asset: the replicator makes it, nobody here does."""
    return dg.AssetSpec(
        asset_key(Kind.MIRROR, table.name),
        deps=[asset_key(Kind.LANDING_ZONE, table.name)],
        group_name=group_name(table.name),
        kinds={"deltalake"},
        description="What the replicator has applied.",
    )


def mirror_observation(status: MonitoredTable) -> dg.AssetObservation:
    """What the replicator says of the table, with the counters of Fabric's monitoring."""
    metadata: dict[str, MetadataItem] = {
        "state": status.state.value,
        "processed_rows": status.processed_rows,
        "processed_bytes": status.processed_bytes,
        "waiting_files": status.waiting_files,
        "message": status.message or "",
        "mirror": dg.MetadataValue.path(status.location),
    }
    if status.last_sync is not None:
        metadata["last_sync"] = status.last_sync.isoformat()
    if status.applied_number is not None:
        metadata["applied_number"] = status.applied_number
    if status.mirror_rows is not None:
        metadata["dagster/row_count"] = status.mirror_rows
    return dg.AssetObservation(asset_key(Kind.MIRROR, status.name), metadata=metadata)
