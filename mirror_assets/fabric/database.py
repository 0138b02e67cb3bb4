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

from mirror_assets.fabric.monitoring import DEFAULT_SCHEMA

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
class ReportedTable:
    """A mirrored table in Fabric's words: the state is a text that Fabric may add to."""

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


def definition_payload() -> str:
    """The definition of a mirrored database whose landing zone is written from outside, as Fabric takes it."""
    target = {"defaultSchema": DEFAULT_SCHEMA, "format": "Delta"}
    properties = {
        "source": {"type": _SOURCE, "typeProperties": {}},
        "target": {"type": "MountedRelationalDatabase", "typeProperties": target},
    }
    return base64.b64encode(json.dumps({"properties": properties}).encode()).decode()


class _Loose(pydantic.BaseModel):
    """What we look at of a document that is Fabric's, not ours."""

    model_config = pydantic.ConfigDict(frozen=True)


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


class _TargetProperties(_Loose):
    defaultSchema: str = DEFAULT_SCHEMA  # noqa: N815 Fabric's spelling


class _Target(_Loose):
    typeProperties: _TargetProperties  # noqa: N815 Fabric's spelling


class _Properties(_Loose):
    source: _Source
    target: _Target


class _Mirroring(_Loose):
    properties: _Properties


def misfit(definition: Definition) -> str | None:
    """Why a mirrored database with this definition can't be ours, or None when it can."""
    payload = _payload(definition.definition.parts)
    if payload is None:
        return f"its definition has no {PART} that can be read"
    properties = payload.properties
    if properties.source.type != _SOURCE:
        return f"mirrors {properties.source.type}, not a landing zone"
    schema = properties.target.typeProperties.defaultSchema
    if schema != DEFAULT_SCHEMA:
        return f"has the default schema {schema!r}, not {DEFAULT_SCHEMA!r}"
    return None


def _payload(parts: Sequence[_Part]) -> _Mirroring | None:
    for part in parts:
        if part.path == PART:
            try:
                return _Mirroring.model_validate_json(base64.b64decode(part.payload, validate=True))
            except (pydantic.ValidationError, ValueError):
                return None
    return None
