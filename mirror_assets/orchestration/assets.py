"""The assets of a table: source, changes, landing and mirror, and those of features; thin around the pipeline."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import dagster as dg

from mirror_assets.composition import exporting_metrics
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome
from mirror_assets.orchestration.asset_names import AssetKind, step_name
from mirror_assets.orchestration.check_steps import checks_on_failure, log_checks
from mirror_assets.orchestration.event_metadata import (
    Metadata,
    landed_metadata,
    skipped_metadata,
    source_event,
    staged_metadata,
)
from mirror_assets.orchestration.materialize import materialize_slices, parse_slices
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import project, resource_keys
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.publish_slice import publish_slice
from mirror_assets.pipeline.stage_range import stage_range

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
        keys = parse_slices(context.partition_keys)
        composed = project(assets, context.resources, context.log.info)
        table_context, run = composed.table(table), context.op_execution_context
        with exporting_metrics(assets.config, context.log.warning), checks_on_failure(run, assets, composed, table):
            processed = process(context, assets, table_context, keys)
            yield from materialize_slices(context, spec.key, table_context, keys, processed)
            if kind is AssetKind.CHANGES:  # it has logged slices of the source
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
