"""Ids of traces. A slice has one trace, whichever processes stage, publish and apply it, and however often."""

from __future__ import annotations

import hashlib


def slice_trace(zone: str, table: str, slice_: str) -> int:
    """Return the id of the slice's trace: 128 bits that all processes compute alike from its landing zone and key."""
    digest = hashlib.sha256(f"{zone}\n{table}\n{slice_}".encode()).digest()
    return int.from_bytes(digest[:16], "big") or 1
