"""The interface to the mirrored tables, which Fabric and the local stand-in both implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Protocol

from mirror_assets.fabric.database import DatabaseStatus
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName


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
    """The status of one mirrored table; `processed_rows` counts operations, not rows of the mirror.

    `waiting_files` counts landing files that are not applied. `applied_number`, the number of the last applied file,
    and `mirror_rows` are None where the replicator does not report them.
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
    """Seconds to wait between two requests for a status, and seconds after which to give up."""

    pause_seconds: float
    limit_seconds: float


class Mirror(Protocol):
    """The mirrored tables. The stand-in applies landing files when it is polled; Fabric does at its own times.

    Every method may raise what Fabric's interface or the landing zone's store raises.
    """

    @property
    def pace(self) -> Pace:
        """How long to wait for a change of status."""
        ...

    def poll(self) -> Sequence[MonitoredTable]:
        """Apply landed files, where that is ours to do, and return every table. Raises RetryError."""
        ...

    def status(self) -> Sequence[MonitoredTable]:
        """Return every table as it is; applies nothing."""
        ...

    def table(self, name: TableName) -> MonitoredTable | None:
        """Return one table as it is, or None when the mirror does not have it; applies nothing."""
        ...

    def poll_table(self, name: TableName) -> MonitoredTable | None:
        """Return one table after a poll, ours or one that is under way."""
        ...


class WatchedMirror(Mirror, Protocol):
    """A mirror that also reports the state of its database in Fabric, and how long that keeps old files."""

    def database(self) -> DatabaseStatus | None:
        """Return the state of the mirrored database; None for the stand-in, which has none."""
        ...

    def retention_days(self) -> int | None:
        """Return for how many days the mirrored Delta tables keep their old files; None if that is unknown."""
        ...

    def at_once(self) -> WatchedMirror:
        """Return the mirror as it is when it is first asked, by one request for all tables."""
        ...
