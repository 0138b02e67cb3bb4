"""When tables' commits have landed, seen from outside: in the landing zone, whoever schedules the work."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from benchmarks.many import ManyTables

_EVERY_SECONDS = 0.1


def seconds_to_land(lake: ManyTables, names: Sequence[str], version: int, limit_seconds: float) -> Mapping[str, float]:
    """Seconds from each table's commit of the version until its manifest covered it; waits for the last of them.

    Both moments are those of the files, so looking rarely makes no figure larger. Raises TimeoutError.
    """
    deadline, landed = time.monotonic() + limit_seconds, dict[str, float]()
    seen = dict[str, int]()
    while len(landed) < len(names):
        if time.monotonic() > deadline:
            message = f"{len(landed)} of {len(names)} tables landed in {limit_seconds:,.0f} s"
            raise TimeoutError(message)
        time.sleep(_EVERY_SECONDS)
        for name in names:
            moment = None if name in landed else _newly_covered(lake, name, version, seen)
            if moment is not None:
                landed[name] = (moment - lake.committed(name, version)) / 1e9
    return landed


def _newly_covered(lake: ManyTables, name: str, version: int, seen: dict[str, int]) -> int | None:
    """The moment of the manifest (nanoseconds since 1970), if it has changed and covers the version."""
    manifest = lake.manifest(name)
    changed = manifest.stat().st_mtime_ns
    if seen.get(name) == changed:
        return None
    seen[name] = changed
    return changed if json.loads(manifest.read_bytes())["covered"] >= version else None
