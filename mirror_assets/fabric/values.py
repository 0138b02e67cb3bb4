"""What is asked of Fabric and what it tells: plain values, nothing of its client."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from uuid import UUID

PUBLIC_ENDPOINT = "https://api.fabric.microsoft.com"


@dataclass(frozen=True)
class Workspace:
    """A workspace, and where Fabric's interface is asked for it. `ca_bundle` replaces the public authorities."""

    id: UUID
    endpoint: str = PUBLIC_ENDPOINT
    ca_bundle: Path | None = None


@dataclass(frozen=True)
class Database:
    """A mirrored database: an item of the workspace."""

    id: UUID
    name: str


class DatabaseState(str, Enum):
    """Fabric's states of a mirrored database (reference `landing-zone` §4.42), and one for those that it adds."""

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
    """How a mirrored database is, with what Fabric says is wrong."""

    state: DatabaseState
    message: str | None


@dataclass(frozen=True)
class ToldTable:
    """A mirrored table in Fabric's words: the state is a text that Fabric may add to."""

    schema: str | None
    table: str
    state: str
    error_code: str | None
    message: str | None
    processed_rows: int
    processed_bytes: int
    last_sync: datetime | None
