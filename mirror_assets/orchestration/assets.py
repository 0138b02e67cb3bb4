"""The assets of a table: source, changes, landing, mirror and history; thin around the pipeline."""

import time
from collections.abc import Iterator, Sequence

import dagster as dg
from pydantic import Field

from mirror_assets.composition import exporting_metrics, history_context
from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.fabric.monitoring import MonitoredTable
from mirror_assets.history.history_context import HistoryContext
from mirror_assets.history.history_log import HistoryCommit
from mirror_assets.history.keep import keep_history
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome
from mirror_assets.orchestration.asset_names import (
    AssetKind,
    MetadataItem,
    asset_key,
    group_name,
    history_pool,
    pool_name,
    slices_of,
)
from mirror_assets.orchestration.asset_pages import asset_page
from mirror_assets.orchestration.check_steps import landing_checks_on_failure
from mirror_assets.orchestration.materialize import Nothing, failure, materialize_slices, slice_keys
from mirror_assets.orchestration.resources import (
    LandingZone,
    SourceTables,
    SparkSessions,
    project,
)
from mirror_assets.orchestration.slice_metadata import (
    Metadata,
    landed_metadata,
    mirrored_columns,
    mirrored_metadata,
    source_materialization,
    staged_metadata,
)
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.publish import publish_slice
from mirror_assets.pipeline.stage_range import stage_range

_LANDED_BEFORE = "it has landed before"
_VOID = "a rebuild has overtaken it"


def source_asset(config: Config, table: TableSettings) -> dg.AssetSpec:
    """Return the external asset of the source table, with the partitions of the assets made from it."""
    page = asset_page(config, AssetKind.SOURCE, table)
    return dg.AssetSpec(
        asset_key(AssetKind.SOURCE, table.name),
        partitions_def=slices_of(table.name),
        group_name=group_name(table.name),
        kinds=page.kinds,
        owners=page.owners,
        tags=page.tags,
        description=page.description,
        metadata=page.metadata,
    )


def changes_asset(config: Config, table: TableSettings) -> dg.AssetsDefinition:
    """Return the asset that stages slices: all slices of a run in one step, in order."""
    key, page = asset_key(AssetKind.CHANGES, table.name), asset_page(config, AssetKind.CHANGES, table)

    @dg.asset(
        key=key,
        deps=[asset_key(AssetKind.SOURCE, table.name)],
        partitions_def=slices_of(table.name),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=pool_name(table.name),
        group_name=group_name(table.name),
        kinds=page.kinds,
        owners=page.owners,
        tags=page.tags,
        description=page.description,
        metadata=page.metadata,
    )
    def changes(
        context: dg.AssetExecutionContext, landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions
    ) -> dg.MaterializeResult[None]:
        keys = slice_keys(context)
        composed = project(config, landing_zone, sources, spark, context.log.info)
        table_context = composed.table(table)
        checking = landing_checks_on_failure(context.op_execution_context, composed, table)
        with exporting_metrics(config, context.log.warning), checking:
            return materialize_slices(context, key, table_context, keys, _stage_slices(context, table_context, keys))

    return changes


def _stage_slices(
    context: dg.AssetExecutionContext, table_context: TableContext, keys: Sequence[SliceKey]
) -> Iterator[Metadata | Nothing]:
    began = time.monotonic()
    for key, record in zip(keys, stage_range(table_context, keys), strict=True):
        if record is None:
            yield Nothing(_LANDED_BEFORE)
        else:
            seconds = time.monotonic() - began
            state = table_context.log.state()
            context.log_event(source_materialization(table_context, state, key, record.read.total))
            yield staged_metadata(table_context, record, {"stage": seconds})
        began = time.monotonic()


def landing_asset(config: Config, table: TableSettings) -> dg.AssetsDefinition:
    """Return the asset that publishes staged slices whose blocking checks have passed."""
    key, page = asset_key(AssetKind.LANDING, table.name), asset_page(config, AssetKind.LANDING, table)

    @dg.asset(
        key=key,
        deps=[asset_key(AssetKind.CHANGES, table.name)],
        partitions_def=slices_of(table.name),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=pool_name(table.name),
        group_name=group_name(table.name),
        kinds=page.kinds,
        owners=page.owners,
        tags=page.tags,
        description=page.description,
        metadata=page.metadata,
    )
    def landing_zone_folder(
        context: dg.AssetExecutionContext, landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions
    ) -> dg.MaterializeResult[None]:
        keys = slice_keys(context)
        composed = project(config, landing_zone, sources, spark, context.log.info)
        table_context = composed.table(table)
        checking = landing_checks_on_failure(context.op_execution_context, composed, table)
        with exporting_metrics(config, context.log.warning), checking:
            return materialize_slices(context, key, table_context, keys, _publish_slices(table_context, keys))

    return landing_zone_folder


def _publish_slices(table_context: TableContext, keys: Sequence[SliceKey]) -> Iterator[Metadata | Nothing]:
    for key in keys:
        began = time.monotonic()
        published = publish_slice(table_context, key)
        if published.outcome is Outcome.LANDED:
            yield landed_metadata(table_context, published, {"publish": time.monotonic() - began})
            continue
        is_newest = published.manifest.slice == key
        known = landed_metadata(table_context, published) if is_newest else {}
        yield Nothing(_VOID if published.outcome is Outcome.VOID else _LANDED_BEFORE, known)


def mirror_asset(config: Config, table: TableSettings) -> dg.AssetSpec:
    """Return the external asset of the mirrored table, which the replicator writes."""
    page = asset_page(config, AssetKind.MIRROR, table)
    return dg.AssetSpec(
        asset_key(AssetKind.MIRROR, table.name),
        deps=[asset_key(AssetKind.LANDING, table.name)],
        group_name=group_name(table.name),
        kinds=page.kinds,
        owners=page.owners,
        tags=page.tags,
        description=page.description,
        metadata=page.metadata,
    )


def mirror_event(
    status: MonitoredTable, manifest: Manifest | None, version: int | None = None, *, has_changed: bool
) -> dg.AssetMaterialization | dg.AssetObservation:
    """Return the event of the mirrored table: a materialization if the replicator has changed it, else an observation.

    `manifest` is what has landed; without it, no version of the source is named. `version` is the one that a mirror has
    which lags, None if it is unknown.
    """
    key, metadata = asset_key(AssetKind.MIRROR, status.name), mirrored_metadata(status, manifest, version)
    if not has_changed:
        return dg.AssetObservation(key, metadata=metadata)
    columns = {} if manifest is None else mirrored_columns(status.name, manifest)
    return dg.AssetMaterialization(key, metadata={**metadata, **columns})


class KeepHistory(dg.Config):
    """The version to continue a history from, when the commits before it can't be kept any more."""

    skip_to: int | None = Field(default=None, ge=0)


def history_asset(settings: Config, table: TableSettings) -> dg.AssetsDefinition:
    """Return the asset that appends the feed to the history table, whose log has the slices: it has no partitions."""
    key, page = asset_key(AssetKind.HISTORY, table.name), asset_page(settings, AssetKind.HISTORY, table)

    @dg.asset(
        key=key,
        deps=[asset_key(AssetKind.SOURCE, table.name)],
        pool=history_pool(table.name),
        group_name=group_name(table.name),
        kinds=page.kinds,
        owners=page.owners,
        tags=page.tags,
        description=page.description,
        metadata=page.metadata,
    )
    def history(
        context: dg.AssetExecutionContext, config: KeepHistory, sources: SourceTables, spark: SparkSessions
    ) -> dg.MaterializeResult[None]:
        table_history = history_context(settings, table, sources.log(table.name, spark.open), spark.open)
        kept: list[HistoryCommit] = []
        try:
            for slice_ in keep_history(table_history, context.log.info, config.skip_to):
                kept.append(slice_)  # noqa: PERF402 the slices before an error are reported
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
