"""`source/...`: the Delta table that is mirrored, observed and never written."""

from __future__ import annotations

import dagster as dg

from mirror_assets.assets.names import Kind, asset_key, group_name, slices_of
from mirror_assets.config import TableSettings
from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.stage import slice_key
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.state import SourceState, source_columns

DATA_VERSION_TAG = "dagster/data_version"


def source_asset(table: TableSettings) -> dg.AssetSpec:
    """The external asset, on the same partitions as what is made from it."""
    return dg.AssetSpec(
        asset_key(Kind.SOURCE, table.name),
        partitions_def=slices_of(table.name),
        group_name=group_name(table.name),
        kinds={"deltalake"},
        description=f"Delta table at {table.source}, {_keys(table)}.",
        metadata={"dagster/uri": table.source},
    )


def _keys(table: TableSettings) -> str:
    return f"key {', '.join(table.mirror_keys)}" if table.mirror_keys else "without keys"


def source_observation(table: TableName, state: SourceState, planned: PlannedSlice) -> dg.AssetObservation:
    """What the source is for one slice: its data version is the slice's last version, so old slices stay fresh."""
    columns = [dg.TableColumn(name, type_) for name, type_ in source_columns(state)]
    return dg.AssetObservation(
        asset_key(Kind.SOURCE, table),
        partition=str(slice_key(planned)),
        tags={DATA_VERSION_TAG: str(planned.last)},
        metadata={
            "dagster/column_schema": dg.TableSchema(columns),
            "dagster/row_count": state.likely_rows,
            "version": state.version,
            "table_id": state.table_id,
            "bytes": state.bytes,
            "files": state.files,
            "properties": dg.MetadataValue.json(dict(state.metadata.configuration)),
            "slice_rows": planned.rows,
        },
    )
