"""A table's slices as dynamic partitions, by the name of the partitions: which are pending, and which old ones go.

A tick reads the newest pages only: the number of partitions grows with the age of a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.orchestration.dagster_internals import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)
from mirror_assets.orchestration.errors import PARTITION_MISSING, PARTITION_UNKNOWN, RANGE_EMPTY
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.runs import failure
from mirror_assets.pipeline.plan import Boundaries

_PAGE = 200
_DELETED_AT_ONCE = 1000


def as_slice(key: str) -> SliceKey | None:
    """Return the slice that a partition key names, or None."""
    try:
        return SliceKey.parse(key)
    except NameRefused:
        return None


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


def runs_slices(run: dg.DagsterRun) -> bool:
    """Return whether the run has partitions; else it only runs checks."""
    return bool({ASSET_PARTITION_RANGE_START_TAG, PARTITION_NAME_TAG} & run.tags.keys())


def requested_slices(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> list[SliceKey]:
    """Return the slices of the run's partitions, by version.

    Raises dagster.Failure for a run without partitions or with a reversed range, and what `parse_slices` raises.
    """
    if not runs_slices(context.run):
        raise failure(PARTITION_MISSING())
    keys = parse_slices(context.partition_keys)
    if not keys:
        tags = context.run.tags
        first, last = tags[ASSET_PARTITION_RANGE_START_TAG], tags[ASSET_PARTITION_RANGE_END_TAG]
        raise failure(RANGE_EMPTY(first=first, last=last))
    return keys


def registered_boundaries(instance: dg.DagsterInstance, assets: MirrorAssets, table: TableName) -> Boundaries:
    """Return the function by which a plan finds the table's registered slices that have not landed.

    It reads the newest pages, down to the first page without such a slice.
    """
    partitions = assets.partitions_name(table)

    def boundaries(epoch: int, covered: int) -> frozenset[int]:
        found, cursor = set[int](), None
        while True:
            page = instance.get_paginated_dynamic_partitions(partitions, _PAGE, ascending=False, cursor=cursor)
            slices = (as_slice(key) for key in page.results)
            pending = {key.last for key in slices if key is not None and _is_pending(key, epoch, covered)}
            found |= pending
            if not page.has_more or not pending:
                return frozenset(found)
            cursor = page.cursor

    return boundaries


def _is_pending(key: SliceKey, epoch: int, covered: int) -> bool:
    return key.epoch > epoch or (key.epoch == epoch and key.last > covered)


def surplus_keys(instance: dg.DagsterInstance, partitions: str, keep: int, epoch: int, covered: int) -> list[str]:
    """Return the keys of the oldest slices beyond the newest `keep`, a thousand at most and never a pending one."""
    known = instance.get_dynamic_partitions(partitions)
    slices = sorted(found for key in known if (found := as_slice(key)) is not None)
    oldest = slices[: max(0, len(slices) - keep)][:_DELETED_AT_ONCE]
    return [str(key) for key in oldest if not _is_pending(key, epoch, covered)]


def ended_keys(instance: dg.DagsterInstance, partitions: str, landing: dg.AssetKey, epoch: int) -> list[str]:
    """Return the keys of earlier epochs that have not landed, and can't any more: Dagster would show them as failed."""
    landed = instance.get_materialized_partitions(landing)
    known = instance.get_dynamic_partitions(partitions)
    ended = {key for key in known if (found := as_slice(key)) is not None and found.epoch < epoch}
    return sorted(ended - landed)


def delete_foreign_keys(instance: dg.DagsterInstance, partitions: str) -> list[str]:
    """Delete and return the newest keys that name no slice: a person has added them, and each would stay red."""
    newest = instance.get_paginated_dynamic_partitions(partitions, _PAGE, ascending=False).results
    foreign = [key for key in newest if as_slice(key) is None]
    delete_keys(instance, partitions, foreign)
    return foreign


def delete_keys(instance: dg.DagsterInstance, partitions: str, keys: Sequence[str]) -> None:
    """Delete the keys; the events of their slices stay in Dagster's event log."""
    for key in keys:
        instance.delete_dynamic_partition(partitions, key)
