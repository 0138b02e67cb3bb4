"""What mirroring costs on OneLake: requests, and the capacity of Fabric that they take (docs/scaling.md)."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.errors import StopError
from mirror_assets.landing.format import Manifest, decode
from mirror_assets.landing.names import TableName, attempt_ms
from mirror_assets.landing.steps import Steps, read

_REQUESTS_OF_SLICE, _REQUESTS_OF_FILE = 16, 2
# CU seconds: a rename is the dear one; other requests cost as a Put Blob does.
_RENAME, _REQUEST = 21.0, 0.3
_DAY = 86_400.0
# So many of the newest slices tell how often slices land. The generations of these have a file of their own.
_LOOKED_BACK = 99
# What lands while a table catches up says nothing about a day.
_SHORTEST_SECONDS = 3600.0


@dataclass(frozen=True)
class OneLakeCost:
    """Requests to OneLake, and CU seconds for them."""

    requests: float
    capacity_seconds: float


def landing_cost(slices: float, files: float) -> OneLakeCost:
    """Return what it costs to land so many slices, and their files, as estimated."""
    requests = _REQUESTS_OF_SLICE * slices
    capacity = _RENAME * files + _REQUEST * (requests + files)
    return OneLakeCost(requests + _REQUESTS_OF_FILE * files, capacity)


def daily_cost(table: TableName, manifest: Manifest, now: float) -> Steps[OneLakeCost | None]:
    """Return what a day of the table costs, if slices land as often as the newest hundred did up to `now`.

    `now` is in seconds since 1970. None when too little has landed to tell, or what has landed can't be read. Costs one
    request.
    """
    first = max(1, manifest.generation - _LOOKED_BACK)
    path = table.history(manifest.epoch, first)
    content = (yield from read(path)) if first < manifest.generation else None
    if content is None:
        return None
    try:
        then = decode(Manifest, path, content.data)
    except StopError:
        return None
    days = max(now - attempt_ms(then.attempt) / 1000, _SHORTEST_SECONDS) / _DAY
    slices, files = manifest.generation - first, manifest.next_number - then.next_number
    return landing_cost(slices / days, files / days)
