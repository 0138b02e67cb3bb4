"""A table's slices as dynamic partitions: which are pending, and which old ones are deleted.

A tick reads the newest pages only: the number of partitions grows with the age of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.orchestration.asset_names import AssetKind, asset_key, partitions_name

_PAGE = 200
# Keys are read again when this share of the keys to keep has been added, so that doing so costs little.
_SLACK = 0.01
_DELETED_AT_ONCE = 1000


@dataclass(frozen=True)
class Registered:
    """The newest registered keys, in the order of registration; every pending slice is among them."""

    keys: tuple[str, ...] = ()

    @property
    def slices(self) -> tuple[SliceKey, ...]:
        """Return the keys that are slices."""
        return tuple(found for key in self.keys if (found := as_slice(key)) is not None)

    @property
    def strangers(self) -> tuple[str, ...]:
        """Return the keys that name no slice, which were added by hand."""
        return tuple(key for key in self.keys if as_slice(key) is None)

    def boundaries(self, epoch: int, covered: int) -> frozenset[int]:
        """Return the last versions of the epoch's slices after the covered version: a plan must split there."""
        return frozenset(key.last for key in self.slices if _is_to_land(key, epoch, covered))


def as_slice(key: str) -> SliceKey | None:
    """Return the slice that a partition key names, or None."""
    try:
        return SliceKey.parse(key)
    except NameRefused:
        return None


def registered(instance: dg.DagsterInstance, table: TableName, epoch: int, covered: int) -> Registered:
    """Return the newest pages of the table's keys, down to the first page without a pending slice."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = instance.get_paginated_dynamic_partitions(partitions_name(table), _PAGE, ascending=False, cursor=cursor)
        found += page.results
        slices = (as_slice(key) for key in page.results)
        to_land = any(key is not None and _is_to_land(key, epoch, covered) for key in slices)
        if not page.has_more or not to_land:
            return Registered(tuple(reversed(found)))
        cursor = page.cursor


def _is_to_land(key: SliceKey, epoch: int, covered: int) -> bool:
    return key.epoch > epoch or (key.epoch == epoch and key.last > covered)


class Surplus:
    """Finds the oldest keys beyond the newest `keep`; counts how many may be added until it reads the keys again."""

    def __init__(self, table: TableName, keep: int) -> None:
        """Keep the `keep` newest slices, and at most 1 % more."""
        self._table, self._keep = table, keep
        self._most = keep + int(keep * _SLACK)
        self._left = -1

    def keys(self, instance: dg.DagsterInstance, added: int, epoch: int, covered: int) -> list[str]:
        """Return the oldest keys beyond those to keep, never a pending one; `added` are new since the last call."""
        self._left -= added
        if self._left >= 0:
            return []
        known = instance.get_dynamic_partitions(partitions_name(self._table))
        slices = sorted(found for key in known if (found := as_slice(key)) is not None)
        total = len(slices)
        most = min(total - self._keep, _DELETED_AT_ONCE) if total > self._most else 0
        surplus = [str(key) for key in slices[:most] if not _is_to_land(key, epoch, covered)]
        self._left = self._most - total + len(surplus)  # below 0 as long as old ones are pending
        return surplus


def ended_keys(instance: dg.DagsterInstance, table: TableName, epoch: int) -> list[str]:
    """Return the keys of earlier epochs that have not landed, and can't any more: Dagster would show them as failed."""
    landed = instance.get_materialized_partitions(asset_key(AssetKind.LANDING, table))
    known = instance.get_dynamic_partitions(partitions_name(table))
    ended = {key for key in known if (found := as_slice(key)) is not None and found.epoch < epoch}
    return sorted(ended - landed)


def delete_keys(instance: dg.DagsterInstance, table: TableName, keys: Sequence[str]) -> None:
    """Delete the keys; the events of their slices stay in Dagster's event log."""
    for key in keys:
        instance.delete_dynamic_partition(partitions_name(table), key)
