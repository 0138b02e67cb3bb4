"""Materializes the slices of a Dagster run in order, with the metadata of each that the UI shows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone

import dagster as dg

from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError, UnknownOutcome
from mirror_assets.landing.cost import landing_cost
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome, Published
from mirror_assets.orchestration.asset_names import MetadataItem
from mirror_assets.pipeline.backoff import note_failure
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.table_lease import leased

Metadata = Mapping[str, MetadataItem]
# A step waits this long for another run that works on the table.
WAIT_SECONDS = 120.0


class NoSlice(SettingError):
    """A partition whose key is no slice: somebody has added it by hand."""

    code = ErrorCode.NO_SLICE

    def __init__(self, partition: str) -> None:
        self.partition = partition
        super().__init__(
            f"partition {partition!r} is no slice of the table: a slice is `epoch-first-last`, as in "
            "0001-00000001-00000002.",
            "choose partitions that the sensor or `mirror_all` has registered, and delete this one (in Dagster's UI: "
            "the asset's menu, Delete partitions).",
        )


def parse_slices(partitions: Sequence[str]) -> list[SliceKey]:
    """Return the slices that the partitions name, in the order of versions; Dagster's order is that of registration.

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
    """Return the run's slices, in order. Raises dagster.Failure."""
    return parse_slices(context.partition_keys)


def materialize_slices(
    context: dg.AssetExecutionContext,
    asset: dg.AssetKey,
    table_context: TableContext,
    keys: Sequence[SliceKey],
    done: Iterator[Metadata],
) -> dg.MaterializeResult[None]:
    """Materialize the slices; `done` processes one slice per item and yields its metadata.

    When a slice fails, the slices before it are logged as materialized, and the step fails with that slice's name.
    Waits while another run works on the table. Raises dagster.Failure.
    """
    finished: dict[SliceKey, Metadata] = {}
    try:
        with leased(table_context.store, table_context.name, context.run.run_id, WAIT_SECONDS):
            for key, metadata in zip(keys, done, strict=True):
                finished[key] = metadata
                context.log.info(f"{asset.to_user_string()}: slice {key} done")
    except MirrorError as error:
        failed = keys[len(finished)]
        for key, metadata in finished.items():
            context.log_event(dg.AssetMaterialization(asset, partition=str(key), metadata=metadata))
        note_failure(table_context, error, context.log.warning, failed)
        raise failure(error, failed) from error
    for key, metadata in finished.items():
        context.add_asset_metadata(metadata, asset_key=asset, partition_key=str(key))
    return dg.MaterializeResult(asset_key=asset)


def failure(error: MirrorError, key: SliceKey | None = None) -> dg.Failure:
    """Return the error as Dagster shows it: what happened, its code, the next step."""
    metadata: dict[str, MetadataItem] = {"code": error.code.value, "family": error.family, "next_step": error.next_step}
    if key is not None:
        metadata["slice"] = str(key)
    return dg.Failure(
        description=str(error), metadata=metadata, allow_retries=isinstance(error, RetryError | UnknownOutcome)
    )


@contextmanager
def failing() -> Iterator[None]:
    """Fail the step with the error's own message. Raises dagster.Failure."""
    try:
        yield
    except MirrorError as error:
        raise failure(error) from error


def staged_metadata(table_context: TableContext, record: SliceRecord) -> dict[str, MetadataItem]:
    """Return the metadata of a staged slice: rows read and written, parts, versions, columns."""
    columns = [dg.TableColumn(column.name, column.type) for column in record.columns]
    return {
        "dagster/column_schema": dg.TableSchema(columns),
        "dagster/partition_row_count": record.markers.total,
        **{f"read_{name}": count for name, count in record.read.model_dump().items()},
        **{f"written_{name}": count for name, count in record.markers.model_dump().items()},
        "parts": len(record.parts),
        "bytes": record.bytes,
        "first_version": record.key.first,
        "last_version": record.key.last,
        **_commit_times(record),
        "kind": record.kind.value,
        **({"chunk": str(record.chunk)} if record.chunk else {}),
        "generation": record.generation,
        "staged_in": dg.MetadataValue.path(f"{table_context.store.root}/{record.folder.path}"),
    }


def skipped_metadata(why: str) -> dict[str, MetadataItem]:
    """Return the metadata of a slice that needed nothing."""
    return {"skipped": why}


def landed_metadata(table_context: TableContext, published: Published) -> dict[str, MetadataItem]:
    """Return the metadata of a landed slice: files, rows, covered version; lag is the age of its last commit."""
    manifest = published.manifest
    rows = sum(entry.markers.total for entry in published.entries)
    landed = published.entries[0].number if published.entries else 0
    chunks = {"chunks": manifest.chunk.of, "rows_of_all_chunks": manifest.landed_rows} if manifest.chunk else {}
    metadata: dict[str, MetadataItem] = {
        "outcome": published.outcome.value,
        "dagster/partition_row_count": rows,
        "files": len(published.entries),
        "first_file": landed,
        "next_number": manifest.next_number,
        "covered_version": manifest.covered,
        "bytes": sum(entry.bytes for entry in published.entries),
        "table_folder": dg.MetadataValue.path(f"{table_context.store.root}/{table_context.name.folder}"),
        **chunks,
        **_cost(published),
    }
    if manifest.covered_commit_ms is not None:
        metadata["lag_seconds"] = max(0.0, round(time.time() - manifest.covered_commit_ms / 1000, 3))
    return metadata


def _cost(published: Published) -> dict[str, MetadataItem]:
    """Return what it costs on OneLake, as estimated; nothing for what had landed before."""
    if published.outcome is not Outcome.LANDED:
        return {}
    cost = landing_cost(1, len(published.entries))
    return {"onelake_requests": round(cost.requests), "onelake_cu_seconds": round(cost.capacity_seconds, 1)}


def _commit_times(record: SliceRecord) -> dict[str, MetadataItem]:
    times = {"first_commit": record.first_commit_ms, "last_commit": record.last_commit_ms}
    return {
        name: datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat()
        for name, milliseconds in times.items()
        if milliseconds is not None
    }
