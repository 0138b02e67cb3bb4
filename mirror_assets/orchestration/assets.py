"""The assets of a table: source, change_feed, landing_zone, mirror and history; thin around the pipeline."""

from collections.abc import Iterator, Sequence

import dagster as dg
from pydantic import Field

from mirror_assets.composition import history_context
from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.fabric.monitoring import MonitoredTable
from mirror_assets.history.history_context import HistoryContext
from mirror_assets.history.history_log import HistoryCommit
from mirror_assets.history.keep import keep_history
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.orchestration.asset_checks import telling_landed_checks
from mirror_assets.orchestration.asset_names import (
    Kind,
    MetadataItem,
    asset_key,
    group_name,
    history_pool,
    pool_name,
    slices_of,
)
from mirror_assets.orchestration.materialize import (
    Metadata,
    failure,
    landed_metadata,
    materialize_slices,
    skipped_metadata,
    slice_keys,
    staged_metadata,
)
from mirror_assets.orchestration.resources import (
    LandingZone,
    SourceTables,
    SparkSessions,
    project,
)
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.plan import slice_key
from mirror_assets.pipeline.publish import publish_slice
from mirror_assets.pipeline.stage_range import stage_range
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.source_state import SourceState, source_columns

DATA_VERSION_TAG = "dagster/data_version"


def source_asset(table: TableSettings) -> dg.AssetSpec:
    """Return the external asset of the source table, with the partitions of the assets made from it."""
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
    """Return the observation of the source for a slice; its data version is the slice's last version."""
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


def change_feed_asset(config: Config, table: TableSettings) -> dg.AssetsDefinition:
    """Return the asset that stages slices: all slices of a run in one step, in order."""
    key = asset_key(Kind.CHANGE_FEED, table.name)

    @dg.asset(
        key=key,
        deps=[asset_key(Kind.SOURCE, table.name)],
        partitions_def=slices_of(table.name),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=pool_name(table.name),
        group_name=group_name(table.name),
        kinds={"pyspark", "parquet"},
        description="Changes of the source as ordered, marked Parquet parts, staged where Fabric does not look.",
    )
    def change_feed(
        context: dg.AssetExecutionContext, landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions
    ) -> dg.MaterializeResult[None]:
        keys = slice_keys(context)
        composed = project(config, landing_zone, sources, spark)
        table_context = composed.table(table)
        with telling_landed_checks(context.op_execution_context, composed, table):
            return materialize_slices(context, key, table_context, keys, _stage_slices(table_context, keys))

    return change_feed


def _stage_slices(table_context: TableContext, keys: Sequence[SliceKey]) -> Iterator[Metadata]:
    for record in stage_range(table_context, keys):
        yield (
            staged_metadata(table_context, record)
            if record
            else skipped_metadata("landed before, or of an earlier epoch")
        )


def landing_zone_asset(config: Config, table: TableSettings) -> dg.AssetsDefinition:
    """Return the asset that publishes staged slices whose blocking checks have passed."""
    key = asset_key(Kind.LANDING_ZONE, table.name)

    @dg.asset(
        key=key,
        deps=[asset_key(Kind.CHANGE_FEED, table.name)],
        partitions_def=slices_of(table.name),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=pool_name(table.name),
        group_name=group_name(table.name),
        kinds={"parquet"},
        description="Landing files of the table, numbered without a gap, each change exactly once and in order.",
    )
    def landing_zone_folder(
        context: dg.AssetExecutionContext, landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions
    ) -> dg.MaterializeResult[None]:
        keys = slice_keys(context)
        composed = project(config, landing_zone, sources, spark)
        table_context = composed.table(table)
        with telling_landed_checks(context.op_execution_context, composed, table):
            return materialize_slices(context, key, table_context, keys, _publish_slices(table_context, keys))

    return landing_zone_folder


def _publish_slices(table_context: TableContext, keys: Sequence[SliceKey]) -> Iterator[Metadata]:
    for key in keys:
        yield landed_metadata(table_context, publish_slice(table_context, key))


def mirror_asset(table: TableSettings) -> dg.AssetSpec:
    """Return the external asset of the mirrored table, which the replicator writes."""
    return dg.AssetSpec(
        asset_key(Kind.MIRROR, table.name),
        deps=[asset_key(Kind.LANDING_ZONE, table.name)],
        group_name=group_name(table.name),
        kinds={"deltalake"},
        description="What the replicator has applied.",
    )


def mirror_observation(status: MonitoredTable, version: int | None = None) -> dg.AssetObservation:
    """Return the observation of the mirrored table, with the counters of Fabric's monitoring.

    `version` is the source's version that the mirror has, None where it can't be told.
    """
    metadata: dict[str, MetadataItem] = {
        **({} if version is None else {"mirror_version": version}),
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


class KeepHistory(dg.Config):
    """The version to continue a history from, when the commits before it can't be kept any more."""

    skip_to: int | None = Field(default=None, ge=0)


def history_asset(settings: Config, table: TableSettings) -> dg.AssetsDefinition:
    """Return the asset that appends the feed to the history table, whose log has the slices: it has no partitions."""
    key = asset_key(Kind.HISTORY, table.name)

    @dg.asset(
        key=key,
        deps=[asset_key(Kind.SOURCE, table.name)],
        pool=history_pool(table.name),
        group_name=group_name(table.name),
        kinds={"pyspark", "deltalake"},
        description="Every row of the source's change data feed, with its commit, in an append-only Delta table.",
    )
    def history(
        context: dg.AssetExecutionContext, config: KeepHistory, sources: SourceTables, spark: SparkSessions
    ) -> dg.MaterializeResult[None]:
        table_history = history_context(settings, table, sources.log(table.name, spark.open), spark.open)
        kept: list[HistoryCommit] = []
        try:
            for slice_ in keep_history(table_history, context.log.info, config.skip_to):
                kept.append(slice_)  # noqa: PERF402 what comes before an error is to be told
            return dg.MaterializeResult(asset_key=key, metadata=_history_metadata(table_history, kept))
        except MirrorError as error:
            if kept:
                context.log_event(dg.AssetMaterialization(key, metadata=_history_metadata(table_history, kept)))
            raise failure(error) from error

    return history


def _history_metadata(table_history: HistoryContext, kept: Sequence[HistoryCommit]) -> dict[str, MetadataItem]:
    """Return what a run has appended, and the version up to which the history is complete."""
    newest = kept[-1] if kept else table_history.history.newest()
    metadata: dict[str, MetadataItem] = {
        "slices": len(kept),
        "rows": sum(slice_.rows for slice_ in kept),
        "table": dg.MetadataValue.path(table_history.history.uri),
    }
    if kept:
        metadata |= {"first_version": kept[0].first, "last_version": kept[-1].last}
    if newest is not None:
        metadata |= {"covered_version": newest.last, "generation": newest.generation, "table_id": newest.table_id}
    return metadata
