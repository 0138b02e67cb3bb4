"""A mirrored database as plain values: its state, its tables and its definition; nothing of Fabric's client."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from uuid import UUID

import pydantic

PUBLIC_ENDPOINT = "https://api.fabric.microsoft.com"
DEFAULT_SCHEMA = "dbo"


@dataclass(frozen=True)
class Workspace:
    """A workspace and the endpoint of its REST interface. `ca_bundle` replaces the public certificate authorities."""

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
    """The state of a mirrored database, with Fabric's message about what is wrong."""

    state: DatabaseState
    message: str | None


@dataclass(frozen=True)
class ReportedTable:
    """A mirrored table as Fabric reports it; `state` is a text, because Fabric may add states."""

    schema: str | None
    table: str
    state: str
    error_code: str | None
    message: str | None
    processed_rows: int
    processed_bytes: int
    last_sync: datetime | None


PART = "mirroring.json"
_SOURCE = "GenericMirror"


class _Loose(pydantic.BaseModel):
    """Part of a document of Fabric's: unknown fields are ignored."""

    model_config = pydantic.ConfigDict(frozen=True)


class TargetProperties(_Loose):
    """The properties of the mirrored tables in a definition; None: Fabric's default."""

    defaultSchema: str = DEFAULT_SCHEMA  # noqa: N815 Fabric's spelling
    format: str = "Delta"
    retentionInDays: int | None = None  # noqa: N815 Fabric's spelling
    enableDeltaChangeDataFeed: bool | None = None  # noqa: N815 Fabric's spelling

    def differences(self, wanted: TargetProperties) -> tuple[str, ...]:
        """Return the properties that have other values than wanted, with both values."""
        found, differing = self.model_dump(mode="json"), wanted.model_dump(mode="json", exclude_none=True)
        return tuple(
            f"{name} is {json.dumps(found[name])}, not {json.dumps(value)}"
            for name, value in differing.items()
            if found[name] != value
        )


def definition_payload(target: TargetProperties) -> str:
    """Encode the definition of an open mirror as Fabric takes it: JSON in base64 (reference `landing-zone` §4.42)."""
    properties = {
        "source": {"type": _SOURCE, "typeProperties": {}},
        "target": {"type": "MountedRelationalDatabase", "typeProperties": target.model_dump(exclude_none=True)},
    }
    return base64.b64encode(json.dumps({"properties": properties}).encode()).decode()


class _Part(_Loose):
    path: str
    payload: str


class _Parts(_Loose):
    parts: tuple[_Part, ...]


class Definition(_Loose):
    """The answer of getDefinition."""

    definition: _Parts


class _Source(_Loose):
    type: str


class _Target(_Loose):
    typeProperties: TargetProperties  # noqa: N815 Fabric's spelling


class _Properties(_Loose):
    source: _Source
    target: _Target


class _Mirroring(_Loose):
    properties: _Properties


def target_properties(definition: Definition) -> TargetProperties | None:
    """Return the properties of the mirrored tables; None for a definition that can't be read."""
    payload = _payload(definition.definition.parts)
    return None if payload is None else payload.properties.target.typeProperties


def misfit(definition: Definition, default_schema: str = DEFAULT_SCHEMA) -> str | None:
    """Return why a mirrored database with this definition is not an open mirror like ours, or None when it is."""
    payload = _payload(definition.definition.parts)
    if payload is None:
        return f"its definition has no {PART} that can be read"
    properties = payload.properties
    if properties.source.type != _SOURCE:
        return f"mirrors {properties.source.type}, not a landing zone"
    schema = properties.target.typeProperties.defaultSchema
    if schema != default_schema:
        return f"has the default schema {schema!r}, not {default_schema!r}"
    return None


def _payload(parts: Sequence[_Part]) -> _Mirroring | None:
    for part in parts:
        if part.path == PART:
            try:
                return _Mirroring.model_validate_json(base64.b64decode(part.payload, validate=True))
            except (pydantic.ValidationError, ValueError):
                return None
    return None
