"""The cost of mirroring on OneLake: requests, and the Fabric capacity that they use (docs/scaling.md)."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName, attempt_ms
from mirror_assets.landing.steps import drive, read_control_file
from mirror_assets.zones import Store

_REQUESTS_OF_SLICE, _REQUESTS_OF_FILE = 16, 2
# CU seconds: a rename is expensive; other requests cost as much as a Put Blob.
_RENAME, _REQUEST = 21.0, 0.3
_DAY = 86_400.0
# How many generations back to measure how often slices land. The newest generations have files of their own.
_LOOKED_BACK = 99
# A shorter time is not representative: the table may be catching up.
_SHORTEST_SECONDS = 3600.0


@dataclass(frozen=True)
class OneLakeCost:
    """Requests to OneLake, and CU seconds for them."""

    requests: float
    capacity_seconds: float


def landing_cost(slices: float, files: float) -> OneLakeCost:
    """Return the estimated cost of landing this many slices with these files."""
    requests = _REQUESTS_OF_SLICE * slices
    capacity = _RENAME * files + _REQUEST * (requests + files)
    return OneLakeCost(requests + _REQUESTS_OF_FILE * files, capacity)


def daily_cost(store: Store, table: TableName, manifest: Manifest, now: float) -> OneLakeCost | None:
    """Return the cost of a day, if slices land as often as the newest hundred did up to `now`.

    `now` is in seconds since 1970. None if too little has landed for an estimate, or the manifests can't be read. Sends
    one request.
    """
    earlier = _earlier(store, table, manifest)
    if earlier is None:
        return None
    days, slices = _days_since(earlier, now), manifest.generation - earlier.generation
    return landing_cost(slices / days, (manifest.next_number - earlier.next_number) / days)


def daily_bytes(store: Store, table: TableName, manifest: Manifest, now: float) -> float | None:
    """Return the bytes that land in a day, if rows land as often as in the newest hundred slices up to `now`.

    The size of a row is estimated from the files of the oldest and the newest of these slices. None and the cost are as
    for `daily_cost`.
    """
    earlier = _earlier(store, table, manifest)
    if earlier is None:
        return None
    entries = (*earlier.entries, *manifest.entries)
    row = sum(entry.bytes for entry in entries) / max(1, sum(entry.markers.total for entry in entries))
    return row * (manifest.landed_rows - earlier.landed_rows) / _days_since(earlier, now)


def _earlier(store: Store, table: TableName, manifest: Manifest) -> Manifest | None:
    """Return the manifest of a hundred slices ago, or of the first slice; None if it is missing or unreadable."""
    first = max(1, manifest.generation - _LOOKED_BACK)
    if first == manifest.generation:
        return None
    return drive(read_control_file(Manifest, table.history(manifest.epoch, first), is_hint=True), store).record


def _days_since(earlier: Manifest, now: float) -> float:
    return max(now - attempt_ms(earlier.attempt) / 1000, _SHORTEST_SECONDS) / _DAY
