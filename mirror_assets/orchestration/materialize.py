"""Materializes the slices of a Dagster run in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import dagster as dg

from mirror_assets.docs_links import error_link
from mirror_assets.errors import MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import SliceKey
from mirror_assets.orchestration.asset_names import DOCS_URL, MetadataItem, link_item
from mirror_assets.orchestration.errors import PARTITION_UNKNOWN
from mirror_assets.orchestration.event_metadata import Metadata
from mirror_assets.orchestration.partitions import as_slice
from mirror_assets.orchestration.run_tags import COMMAND_TAG, tag_slices
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.table_lease import leased

# A step waits this long for another run that works on the table.
WAIT_SECONDS = 120.0


def parse_slices(partitions: Sequence[str]) -> list[SliceKey]:
    """Return the slices that the partitions name, by version; Dagster's order is that of registration.

    Raises dagster.Failure for a partition that is not a slice: one that was added by hand.
    """
    keys = []
    for partition in partitions:
        try:
            keys.append(SliceKey.parse(partition))
        except NameRefused:
            raise failure(PARTITION_UNKNOWN(partition=partition)) from None
    return sorted(keys)


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


def failure(error: MirrorError, key: SliceKey | None = None) -> dg.Failure:
    """Return the error as Dagster shows it: what happened, its code, the next step, and a link to its documentation."""
    metadata: dict[str, MetadataItem] = {
        "code": error.code.value,
        "family": error.family,
        "next_step": error.next_step,
        DOCS_URL: link_item(error_link(error.code.value)),
    }
    if key is not None:
        metadata["slice"] = str(key)
    return dg.Failure(
        description=str(error), metadata=metadata, allow_retries=isinstance(error, RetryError | UnknownOutcome)
    )


INTERRUPTS = (KeyboardInterrupt, dg.DagsterExecutionInterruptedError)
STOPPED = "Stopped by a person. Nothing is lost: the next run continues after the last slice that has landed."


def cancel(context: dg.OpExecutionContext, text: str) -> NoReturn:
    """End the run as canceled, with a sentence: nothing has failed. Raises dagster.Failure."""
    run = context.instance.get_run_by_id(context.run_id)
    if run is not None:
        context.instance.report_run_canceling(run, text)
    raise dg.Failure(text, allow_retries=False)


@contextmanager
def stopping(context: dg.OpExecutionContext) -> Iterator[None]:
    """End a step that a person interrupts with one sentence, and its run as canceled. Raises dagster.Failure.

    An interrupt without such a request, as from a machine that shuts down, is raised again: Dagster may retry the run.
    """
    try:
        yield
    except INTERRUPTS:
        run = context.instance.get_run_by_id(context.run_id)
        if run is not None and COMMAND_TAG in run.tags:
            context.instance.report_run_canceling(run, STOPPED)
        elif run is None or run.status is not dg.DagsterRunStatus.CANCELING:
            raise
        raise dg.Failure(STOPPED, allow_retries=False) from None


@contextmanager
def failing() -> Iterator[None]:
    """Fail the step with the error's own message. Raises dagster.Failure."""
    try:
        yield
    except MirrorError as error:
        raise failure(error) from error
