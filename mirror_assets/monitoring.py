"""The interface to the mirrored tables: Fabric's, and those of the local stand-in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Protocol

from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName

# The schema in which Fabric has tables without one.
DEFAULT_SCHEMA = "dbo"


class DatabaseState(str, Enum):
    """Fabric's states of a mirrored database (reference `landing-zone` §4.42); UNKNOWN is any state that it adds."""

    INITIALIZING = "Initializing"
    INITIALIZED = "Initialized"
    STARTING = "Starting"
    RUNNING = "Running"
    PAUSED = "Paused"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    UNKNOWN = "Unknown"


@dataclass(frozen=True)
class DatabaseStatus:
    """The state of a mirrored database, with Fabric's error message."""

    state: DatabaseState
    message: str | None


class TableState(str, Enum):
    """Fabric's states of a mirrored table (reference `landing-zone` §4.42); UNKNOWN is any state that it adds."""

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
    and `mirror_rows` are None where the replicator does not report them. `sync_latency_seconds`, from the source's
    commit to the mirror's, is that of the last change, as Fabric measures it.
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
    sync_latency_seconds: int | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def location(self) -> str:
        """Path or URI of the mirrored table, as Spark reads it."""

    @abstractmethod
    def has_applied(self, manifest: Manifest) -> bool:
        """Whether the mirror has applied all files that the manifest has committed."""


@dataclass(frozen=True)
class Pace:
    """Seconds to wait between two requests for a status, and seconds after which to give up."""

    pause_seconds: float
    limit_seconds: float


class Mirror(Protocol):
    """The mirrored tables. The stand-in applies landing files when it is polled; Fabric has its own schedule.

    Every method may raise what Fabric's API or the landing zone's store raises.
    """

    @property
    def pace(self) -> Pace:
        """How long to wait for a change of status."""
        ...

    def poll(self) -> Sequence[MonitoredTable]:
        """Apply landed files, if this is the stand-in, and return every table. Raises RetryError."""
        ...

    def status(self) -> Sequence[MonitoredTable]:
        """Return every table; applies nothing."""
        ...

    def table(self, name: TableName) -> MonitoredTable | None:
        """Return one table, or None if the mirror does not have it; applies nothing."""
        ...

    def poll_table(self, name: TableName) -> MonitoredTable | None:
        """Return one table after a poll by this or another process."""
        ...

    def database(self) -> DatabaseStatus | None:
        """Return the state of the mirrored database; None for the stand-in, which has none."""
        ...

    def retention_days(self) -> int | None:
        """Return for how many days the mirrored Delta tables retain old files; None if unknown."""
        ...

    def at_once(self) -> Mirror:
        """Return a mirror that sends each request once and caches the response, for all tables."""
        ...
