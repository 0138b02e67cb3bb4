"""The assets of a table: source, changes, landing and mirror, and those of features; thin around the pipeline."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import dagster as dg

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome
from mirror_assets.orchestration.check_runs import checks_on_failure, log_checks
from mirror_assets.orchestration.event_metadata import (
    Metadata,
    landed_metadata,
    skipped_metadata,
    source_event,
    staged_metadata,
)
from mirror_assets.orchestration.mirror_assets import MirrorAssets, step_name
from mirror_assets.orchestration.partitions import as_slice, requested_slices
from mirror_assets.orchestration.resources import project, resource_keys
from mirror_assets.orchestration.runs import WAIT_SECONDS, failing, failure, stopping, tag_slices
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import publish_slice, stage_range
from mirror_assets.pipeline.leases import leased
from mirror_assets.pipeline.project import exporting_metrics

_LANDED_BEFORE = "it has landed before"
_VOID = "a rebuild has overtaken it"
ProcessSlices: TypeAlias = Callable[
    [dg.AssetExecutionContext, MirrorAssets, TableContext, Sequence[SliceKey]], Iterator[Metadata]
]


def table_assets(assets: MirrorAssets, table: TableSettings) -> Iterator[dg.AssetSpec | dg.AssetsDefinition]:
    """Yield the assets of the table, in the order of the data."""
    if table.source_asset is None:
        yield assets.spec(AssetKind.SOURCE, table.name)
    yield _slices_asset(assets, table, AssetKind.CHANGES, _stage_slices)
    yield _slices_asset(assets, table, AssetKind.LANDING, _publish_slices)
    yield assets.spec(AssetKind.MIRROR, table.name)
    for feature in assets.config.all_features:
        yield from feature.assets(assets, table)


def _slices_asset(
    assets: MirrorAssets, table: TableSettings, kind: AssetKind, process: ProcessSlices
) -> dg.AssetsDefinition:
    """Return an asset whose partitions are slices: all slices of a run in one step, in order."""
    spec = assets.spec(kind, table.name)

    @dg.multi_asset(
        name=step_name(spec.key),
        specs=[spec],
        backfill_policy=dg.BackfillPolicy.single_run(),
        # One run at a time works on a table.
        pool=step_name(assets.key(AssetKind.LANDING, table.name)),
        required_resource_keys=resource_keys(assets),
    )
    def slices(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        keys = requested_slices(context)
        with failing():
            composed = project(assets, context.resources, context.log.info)
        table_context, run = composed.table(table), context.op_execution_context
        with exporting_metrics(assets.config, context.log.warning), checks_on_failure(run, assets, composed, table):
            processed = process(context, assets, table_context, keys)
            yield from materialize_slices(context, spec.key, table_context, keys, processed)
            if kind == AssetKind.CHANGES:  # it has logged slices of the source
                log_checks(run, assets, composed, table, AssetKind.SOURCE)

    return slices


def _stage_slices(
    context: dg.AssetExecutionContext, assets: MirrorAssets, table_context: TableContext, keys: Sequence[SliceKey]
) -> Iterator[Metadata]:
    """Stage the slices; the checks of the asset changes read them before they are published."""
    began = time.monotonic()
    for key, record in zip(keys, stage_range(table_context, keys), strict=True):
        if record is None:
            yield skipped_metadata(_LANDED_BEFORE, key)
        else:
            seconds = time.monotonic() - began
            state = table_context.log.state()
            context.log_event(source_event(assets, table_context, state, key, record.read.total))
            yield staged_metadata(record, {"stage": seconds})
        began = time.monotonic()


def _publish_slices(
    _: dg.AssetExecutionContext, assets: MirrorAssets, table_context: TableContext, keys: Sequence[SliceKey]
) -> Iterator[Metadata]:
    """Publish the staged slices whose blocking checks have passed."""
    for key in keys:
        began = time.monotonic()
        published = publish_slice(table_context, key)
        if published.outcome is Outcome.LANDED:
            yield landed_metadata(assets, table_context, published, {"publish": time.monotonic() - began})
            continue
        is_newest = published.manifest.slice == key
        known = landed_metadata(assets, table_context, published) if is_newest else {}
        yield skipped_metadata(_VOID if published.outcome is Outcome.VOID else _LANDED_BEFORE, key, known)


def materialize_slices(
    context: dg.AssetExecutionContext,
    asset: dg.AssetKey,
    table_context: TableContext,
    keys: Sequence[SliceKey],
    done: Iterator[Metadata],
) -> Iterator[dg.MaterializeResult[None]]:
    """Materialize the slices; `done` processes one slice per item and yields its metadata.

    When a slice fails, or a person stops the step, the slices before it are logged as materialized, and the step fails
    with that slice's name. A slice that was skipped (`landed_before`) keeps the metadata of its newest event. The
    newest event of the asset is that of its newest slice. Waits while another run works on the table. Raises
    dagster.Failure.
    """
    finished: dict[SliceKey, Metadata] = {}
    newest = context.instance.get_latest_materialization_event(asset)
    before = newest.asset_materialization if newest else None
    tag_slices(context.instance, context.run, table_context.name, keys)
    try:
        with (
            stopping(context.op_execution_context),
            leased(table_context, context.run.run_id, WAIT_SECONDS),
        ):
            for key, metadata in zip(keys, done, strict=True):
                why = metadata.get("landed_before")
                finished[key] = metadata if why is None else _skipped(context.instance, asset, key, metadata)
                context.log.info(f"{asset.to_user_string()}: slice {key} {why or metadata.get('summary') or 'done'}")
    except (MirrorError, dg.Failure) as error:
        for key, metadata in finished.items():
            context.log_event(dg.AssetMaterialization(asset, partition=str(key), metadata=metadata))
        if isinstance(error, dg.Failure):
            raise
        raise failure(error, keys[len(finished)]) from error
    for key, metadata in finished.items():
        context.add_asset_metadata(metadata, asset_key=asset, partition_key=str(key))
    yield dg.MaterializeResult(asset_key=asset)
    # Dagster has logged the slices in no order, and its pages show the newest event.
    events = {str(key): dg.AssetMaterialization(asset, partition=str(key), metadata=finished[key]) for key in keys}
    if before is not None and before.partition is not None:
        events.setdefault(before.partition, before)
    known = {found: name for name in events if (found := as_slice(name)) is not None}
    last = context.instance.get_latest_materialization_event(asset)
    shown = last.asset_materialization if last else None
    if shown is not None and shown.partition != known[max(known)]:
        context.log_event(events[known[max(known)]])


def _skipped(instance: dg.DagsterInstance, asset: dg.AssetKey, key: SliceKey, skipped: Metadata) -> Metadata:
    """Return the metadata of the slice's newest event, with the reason why nothing was left to do in its summary."""
    filters = dg.AssetRecordsFilter(asset, asset_partitions=[str(key)])
    newest = instance.fetch_materializations(filters, limit=1).records
    event = newest[0].asset_materialization if newest else None
    if event is None:
        return skipped
    why = str(skipped["landed_before"])
    summary = event.metadata.get("summary")
    text = str(summary.value) if isinstance(summary, dg.TextMetadataValue) else ""
    return {**event.metadata, "summary": f"{why}: {text.removeprefix(f'{why}: ')}", "landed_before": why}
