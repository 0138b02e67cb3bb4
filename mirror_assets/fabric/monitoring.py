"""What a replicator tells of its tables, whoever it is: Fabric's service, or the local stand-in for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Protocol

from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName

DEFAULT_SCHEMA = "dbo"


class TableState(str, Enum):
    """Fabric's states of a mirrored table (reference `landing-zone` §4.42), and one for those that it adds."""

    INITIALIZED = "Initialized"
    SNAPSHOTTING = "Snapshotting"
    REPLICATING = "Replicating"
    RESEEDING = "Reseeding"
    STOPPED = "Stopped"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True)
class MonitoredTable(ABC):
    """One table as its replicator has it; `processed_rows` counts operations, not the rows of the mirror.

    `waiting_files` counts landing files that are there and not applied. `applied_number`, that of the last landing file
    applied, and `mirror_rows` are None where the replicator does not tell them.
    """

    name: TableName
    state: TableState
    error_code: str | None
    message: str | None
    processed_rows: int
    processed_bytes: int
    last_sync: datetime | None
    folder_present: bool
    waiting_files: int
    applied_number: int | None
    mirror_rows: int | None

    @property
    @abstractmethod
    def location(self) -> str:
        """Path or URI of the mirrored table, as Spark reads it."""

    @abstractmethod
    def has_applied(self, manifest: Manifest) -> bool:
        """Whether the mirror holds all that the manifest has committed."""


@dataclass(frozen=True)
class Pace:
    """How long to wait between two questions to a replicator, and after how long to give up."""

    pause_seconds: float
    limit_seconds: float


class Mirror(Protocol):
    """The mirrored tables. A replicator that is ours to move does an iteration when it is polled; Fabric only tells.

    Every method may raise what the replicator's service or the landing zone's store raises.
    """

    @property
    def pace(self) -> Pace:
        """How to wait for it."""
        ...

    def poll(self) -> Sequence[MonitoredTable]:
        """Every table, after an iteration. Raises RetryError when that can't be had now."""
        ...

    def status(self) -> Sequence[MonitoredTable]:
        """Every table as it is; nothing is moved."""
        ...

    def table(self, name: TableName) -> MonitoredTable | None:
        """One table as it is, or None when the mirror does not have it (any more); nothing is moved."""
        ...

    def look(self, name: TableName) -> MonitoredTable | None:
        """The same after an iteration, ours or one that is under way."""
        ...
