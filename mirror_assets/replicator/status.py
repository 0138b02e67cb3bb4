"""What a replicator says of its tables: the part that Fabric's monitoring knows too, and the stand-in's additions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

from mirror_assets.landing.names import TableName


class TableState(str, Enum):
    """Fabric's states of a mirrored table (reference `landing-zone` §4.42)."""

    INITIALIZED = "Initialized"
    SNAPSHOTTING = "Snapshotting"
    REPLICATING = "Replicating"
    RESEEDING = "Reseeding"
    STOPPED = "Stopped"
    FAILED = "Failed"


@dataclass(frozen=True)
class MonitoredTable:
    """One table as Fabric's monitoring shows it; `processed_rows` counts operations, not the rows of the mirror."""

    name: TableName
    state: TableState
    error_code: str | None
    message: str | None
    processed_rows: int
    processed_bytes: int
    last_sync: datetime | None


@dataclass(frozen=True)
class TableStatus(MonitoredTable):
    """One table of the local stand-in.

    `applied_number` is the last landing file applied, 0 before the first; `next_number` the one it waits for;
    `waiting_files` counts landing files that are there and not applied: behind a gap, or from a bad one on.
    """

    applied_number: int
    next_number: int
    waiting_files: int
    folder_present: bool
    mirror_path: Path
    mirror_rows: int
