"""Runs a step over the slices of a run, in order, and keeps what was finished when a later slice fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from mirror_assets.assets.items import MetadataItem
from mirror_assets.assets.names import FAILED_SLICE_TAG, REBUILD_TAG
from mirror_assets.errors import MirrorError, RebuildError, RetryError, UnknownOutcome
from mirror_assets.landing.names import SliceKey

Metadata = Mapping[str, MetadataItem]


def slice_keys(context: dg.AssetExecutionContext) -> list[SliceKey]:
    """The run's slices, in the order in which things happened: Dagster's own order is that of registration."""
    return sorted(SliceKey.parse(key) for key in context.partition_keys)


def materialize_slices(
    context: dg.AssetExecutionContext, asset: dg.AssetKey, keys: Sequence[SliceKey], done: Iterator[Metadata]
) -> dg.MaterializeResult[None]:
    """The step's result; `done` does one slice per item and gives its metadata.

    A failure keeps the slices before it: they are logged one by one, then the step fails, naming the slice that did.
    """
    finished: dict[SliceKey, Metadata] = {}
    try:
        for key, metadata in zip(keys, done, strict=True):
            finished[key] = metadata
            context.log.info(f"{asset.to_user_string()}: slice {key} done")
    except MirrorError as error:
        failed = keys[len(finished)]
        for key, metadata in finished.items():
            context.log_event(dg.AssetMaterialization(asset, partition=str(key), metadata=metadata))
        mark_failed(context.instance, context.run.run_id, failed, error)
        raise failure(error, failed) from error
    for key, metadata in finished.items():
        context.add_asset_metadata(metadata, asset_key=asset, partition_key=str(key))
    return dg.MaterializeResult(asset_key=asset)


def mark_failed(instance: dg.DagsterInstance, run_id: str, key: SliceKey, error: MirrorError | None = None) -> None:
    """Tell the sensor, through the run's tags, which slice to stop before, and what only a rebuild mends.

    A break of the source the sensor sees for itself; what only reading the source's rows tells, a run has to say.
    """
    tags = {FAILED_SLICE_TAG: str(key)}
    if isinstance(error, RebuildError) and error.only_reading_tells:
        tags[REBUILD_TAG] = error.what
    instance.add_run_tags(run_id, tags)


def failure(error: MirrorError, key: SliceKey | None = None) -> dg.Failure:
    """The error as Dagster shows it: what happened, its code, the next step."""
    metadata: dict[str, MetadataItem] = {"code": error.code.value, "family": error.family, "next_step": error.next_step}
    if key is not None:
        metadata["slice"] = str(key)
    return dg.Failure(
        description=str(error), metadata=metadata, allow_retries=isinstance(error, RetryError | UnknownOutcome)
    )
