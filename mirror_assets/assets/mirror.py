"""`mirror/...`: the replicated table on the other side, observed."""

from __future__ import annotations

import dagster as dg

from mirror_assets.assets.items import MetadataItem
from mirror_assets.assets.names import Kind, asset_key, group_name
from mirror_assets.config import TableSettings
from mirror_assets.replicator import TableStatus


def mirror_asset(table: TableSettings) -> dg.AssetSpec:
    """The external asset: the replicator makes it, nobody here does."""
    return dg.AssetSpec(
        asset_key(Kind.MIRROR, table.name),
        deps=[asset_key(Kind.LANDING_ZONE, table.name)],
        group_name=group_name(table.name),
        kinds={"deltalake"},
        description="What the replicator has applied.",
    )


def mirror_observation(status: TableStatus) -> dg.AssetObservation:
    """What the replicator says of the table, with the counters of Fabric's monitoring."""
    metadata: dict[str, MetadataItem] = {
        "state": status.state.value,
        "applied_number": status.applied_number,
        "processed_rows": status.processed_rows,
        "processed_bytes": status.processed_bytes,
        "waiting_files": status.waiting_files,
        "dagster/row_count": status.mirror_rows,
        "message": status.message or "",
        "mirror": dg.MetadataValue.path(str(status.mirror_path)),
    }
    return dg.AssetObservation(asset_key(Kind.MIRROR, status.name), metadata=metadata)
