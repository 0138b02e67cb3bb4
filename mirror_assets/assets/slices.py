"""Runs a step over the slices of a run, in order, and keeps what was finished when a later slice fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from mirror_assets.assets.items import MetadataItem
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError, UnknownOutcome
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import SliceKey
from mirror_assets.mirroring.failures import note_failure
from mirror_assets.mirroring.lease import leased
from mirror_assets.mirroring.work import TableWork

Metadata = Mapping[str, MetadataItem]
# Another run that works on the table is waited for this long; what it leaves is done then.
_WAIT_SECONDS = 120.0


class NoSlice(SettingError):
    """A partition that was added by hand and names no slice."""

    code = ErrorCode.NO_SLICE

    def __init__(self, partition: str) -> None:
        self.partition = partition
        super().__init__(
            f"partition {partition!r} is no slice of the table: a slice is `life-first-last`, as in "
            "0001-00000001-00000002.",
            "choose partitions that the sensor or `mirror_all` has registered, and delete this one (in Dagster's UI: "
            "the asset's menu, Delete partitions).",
        )


def parse_slices(partitions: Sequence[str]) -> list[SliceKey]:
    """The slices that the partitions name, in the order in which things happened: Dagster's is that of registration.

    Raises dagster.Failure for a partition that names none.
    """
    try:
        return sorted(_parsed(key) for key in partitions)
    except NoSlice as error:
        raise failure(error) from error


def _parsed(partition: str) -> SliceKey:
    try:
        return SliceKey.parse(partition)
    except NameRefused:
        raise NoSlice(partition) from None


def slice_keys(context: dg.AssetExecutionContext) -> list[SliceKey]:
    """The run's slices, in order. Raises dagster.Failure."""
    return parse_slices(context.partition_keys)


def materialize_slices(
    context: dg.AssetExecutionContext,
    asset: dg.AssetKey,
    work: TableWork,
    keys: Sequence[SliceKey],
    done: Iterator[Metadata],
) -> dg.MaterializeResult[None]:
    """The step's result; `done` does one slice per item and gives its metadata.

    A failure keeps the slices before it: they are logged one by one, then the step fails, naming the slice that did.
    While another run works on the table, the step waits for it, and fails if it takes long.
    """
    finished: dict[SliceKey, Metadata] = {}
    try:
        with leased(work.store, work.name, context.run.run_id, _WAIT_SECONDS):
            for key, metadata in zip(keys, done, strict=True):
                finished[key] = metadata
                context.log.info(f"{asset.to_user_string()}: slice {key} done")
    except MirrorError as error:
        failed = keys[len(finished)]
        for key, metadata in finished.items():
            context.log_event(dg.AssetMaterialization(asset, partition=str(key), metadata=metadata))
        note_failure(work, error, context.log.warning, failed)
        raise failure(error, failed) from error
    for key, metadata in finished.items():
        context.add_asset_metadata(metadata, asset_key=asset, partition_key=str(key))
    return dg.MaterializeResult(asset_key=asset)


def failure(error: MirrorError, key: SliceKey | None = None) -> dg.Failure:
    """The error as Dagster shows it: what happened, its code, the next step."""
    metadata: dict[str, MetadataItem] = {"code": error.code.value, "family": error.family, "next_step": error.next_step}
    if key is not None:
        metadata["slice"] = str(key)
    return dg.Failure(
        description=str(error), metadata=metadata, allow_retries=isinstance(error, RetryError | UnknownOutcome)
    )
