"""A mirrored database as plain values: its state, its tables and its definition; and how to create and start one.

Both are safe to run again after any failure. Only `fabric accept` stops one: an open mirror that is stopped and started
again replays its whole landing zone (reference `landing-zone` §4.41). Does not import Fabric's client.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import pydantic
from pydantic import AliasPath, Field

from mirror_assets.features.fabric.errors import (
    FABRIC_ITEM_UNFIT,
    FABRIC_NOT_READY,
    FABRIC_UNAVAILABLE,
    MIRRORING_STOPPED,
    FabricRefused,
)
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import DEFAULT_SCHEMA, DatabaseState

if TYPE_CHECKING:
    from mirror_assets.features.fabric.client import FabricClient


@dataclass(frozen=True)
class Database:
    """A mirrored database: an item of the workspace."""

    id: UUID
    name: str


@dataclass(frozen=True)
class ReportedTable:
    """A mirrored table as Fabric reports it; `state` is a text, because Fabric may add states."""

    name: TableName
    state: str
    error_code: str | None
    message: str | None
    processed_rows: int
    processed_bytes: int
    last_sync: datetime | None
    sync_latency_seconds: int | None = None


PART = "mirroring.json"
_SOURCE = "GenericMirror"


class _Document(pydantic.BaseModel):
    """A document of Fabric's: unknown fields are ignored."""

    model_config = pydantic.ConfigDict(frozen=True)


class TargetProperties(_Document):
    """The properties of the mirrored tables in a definition; None means Fabric's default."""

    defaultSchema: str = DEFAULT_SCHEMA  # noqa: N815 Fabric's spelling
    format: str = "Delta"
    retentionInDays: int | None = None  # noqa: N815 Fabric's spelling
    enableDeltaChangeDataFeed: bool | None = None  # noqa: N815 Fabric's spelling

    def differences(self, wanted: TargetProperties) -> tuple[str, ...]:
        """Return the properties that were set in `wanted` and have other values here, with both values."""
        named = wanted.model_dump(exclude_none=True, exclude_unset=True)
        pairs = ((name, getattr(self, name), value) for name, value in named.items())
        return tuple(
            f"{name} is {json.dumps(own)}, not {json.dumps(value)}"
            for name, own, value in pairs
            if own != value and (own, value) != (None, False)  # what is not set is off
        )


def definition_payload(target: TargetProperties) -> str:
    """Encode the definition of an open mirror for Fabric: JSON in base64 (reference `landing-zone` §4.42)."""
    properties = {
        "source": {"type": _SOURCE, "typeProperties": {}},
        "target": {"type": "MountedRelationalDatabase", "typeProperties": target.model_dump(exclude_none=True)},
    }
    return base64.b64encode(json.dumps({"properties": properties}).encode()).decode()


class _Part(_Document):
    path: str
    payload: str


class Mirroring(_Document):
    """What a mirrored database mirrors, and the properties of its tables."""

    source: str = Field(validation_alias=AliasPath("properties", "source", "type"))
    target: TargetProperties = Field(validation_alias=AliasPath("properties", "target", "typeProperties"))


class Definition(_Document):
    """The response of getDefinition."""

    parts: tuple[_Part, ...] = Field(validation_alias=AliasPath("definition", "parts"))

    @property
    def _document(self) -> bytes:
        """The document of the mirrored database. Raises ValueError."""
        payload = next((part.payload for part in self.parts if part.path == PART), "")
        return base64.b64decode(payload, validate=True)

    @property
    def mirroring(self) -> Mirroring | None:
        """The source and the properties of the mirrored tables; None if the definition is unreadable."""
        try:
            return Mirroring.model_validate_json(self._document)
        except ValueError:  # of base64, or pydantic's ValidationError
            return None

    def payload_with(self, changes: Mapping[str, int | bool]) -> str:
        """Return the payload of the same definition with other properties of the mirrored tables. Raises ValueError."""
        document = json.loads(self._document)
        document["properties"]["target"]["typeProperties"] |= changes
        return base64.b64encode(json.dumps(document).encode()).decode()


# More tables in one request are refused; a request without names refreshes all.
_MOST_REFRESHED = 25


class _RefreshError(_Document):
    errorCode: str = ""  # noqa: N815 Fabric's spelling
    message: str = ""


class RefreshedTable(_Document):
    """A table of the SQL endpoint after a refresh; `name` has the schema. Fabric may add values of `status`."""

    name: str = Field(validation_alias="tableName")
    status: str
    last_success: datetime | None = Field(None, validation_alias="lastSuccessfulSyncDateTime")
    error: _RefreshError | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the endpoint does not have the table as its Delta table is. `NotRun`: nothing was to be done."""
        return self.status not in ("Success", "NotRun") or self.error is not None

    @property
    def message(self) -> str:
        """Fabric's error; empty if it reports none."""
        return ": ".join(text for text in (self.error.errorCode, self.error.message) if text) if self.error else ""


class RefreshedTables(_Document):
    """The result of refreshMetadata."""

    value: tuple[RefreshedTable, ...]


def refresh_request(tables: Sequence[TableName]) -> dict[str, list[dict[str, object]]]:
    """Return the body of refreshMetadata for these tables, each with its schema; for all if there are many."""
    schemas = dict[str, list[str]]()
    for name in tables if len(tables) <= _MOST_REFRESHED else ():
        schemas.setdefault(name.schema or DEFAULT_SCHEMA, []).append(name.table)
    listed: list[dict[str, object]] = [{"schema": schema, "tableNames": names} for schema, names in schemas.items()]
    return {"tables": listed} if listed else {}


_NAME_TAKEN = frozenset({"ItemDisplayNameAlreadyInUse", "ItemDisplayNameNotAvailableYet"})
_CHANGING = (DatabaseState.INITIALIZING, DatabaseState.STOPPING)
_STARTED = (DatabaseState.STARTING, DatabaseState.RUNNING)


@dataclass(frozen=True)
class Created:
    """A mirrored database, and whether it existed before; `differences` lists properties with unwanted values."""

    database: Database
    was_there: bool
    differences: tuple[str, ...] = ()


def create_database(client: FabricClient, name: str, target: TargetProperties) -> Created:
    """Find or create the mirrored database of this name. Raises FABRIC_ITEM_UNFIT, and what the client raises."""
    found = _find(client, name, target)
    if found is not None:
        return replace(found, was_there=True)
    try:
        return Created(client.create(name, target), was_there=False)
    except (FABRIC_UNAVAILABLE.error, FabricRefused) as error:
        # The response was lost, or a retry failed because the first request had created the database.
        if isinstance(error, FabricRefused) and error.answer not in _NAME_TAKEN:
            raise
        found = _find(client, name, target)
        if found is None:
            raise
        return found


def update_database(client: FabricClient, database: UUID, wanted: TargetProperties) -> tuple[str, ...]:
    """Set the properties that `wanted` names, and return those that Fabric reports otherwise afterwards.

    All else of the definition is unchanged. Raises FABRIC_ITEM_UNFIT, and what the client raises.
    """
    found = client.definition(database)
    if found.mirroring is None or found.mirroring.source != _SOURCE:
        raise FABRIC_ITEM_UNFIT(name=str(database), item=str(database), why="is not an open mirror")
    if not found.mirroring.target.differences(wanted):
        return ()
    changes = wanted.model_dump(exclude_none=True, exclude_unset=True)
    client.update_definition(database, found.payload_with(changes))
    now = client.definition(database).mirroring
    return ("its definition can't be read any more",) if now is None else now.target.differences(wanted)


def start_mirroring(client: FabricClient, database: UUID, *, replay: bool = False) -> bool:
    """Start mirroring, and return False if it is already running.

    Raises FABRIC_NOT_READY while it can't be started, MIRRORING_STOPPED for a stopped one unless `replay` is set, and
    what the client raises.
    """
    state = client.status(database).state
    if state in _STARTED:
        return False
    if state in _CHANGING:
        raise FABRIC_NOT_READY(item=str(database), state=state.value)
    if state is DatabaseState.STOPPED and not replay:
        raise MIRRORING_STOPPED(item=str(database))
    try:
        client.start(database)
    except FABRIC_UNAVAILABLE.error:
        if client.status(database).state not in _STARTED:
            raise
    return True


def _find(client: FabricClient, name: str, target: TargetProperties) -> Created | None:
    """Return the mirrored database of this name, if any. Raises FABRIC_ITEM_UNFIT for one without a landing zone."""
    found = next((database for database in client.databases() if database.name == name), None)
    if found is None:
        return None
    mirroring, why = client.definition(found.id).mirroring, None
    if mirroring is None:
        why = f"its definition has no readable {PART}"
    elif mirroring.source != _SOURCE:
        why = f"mirrors {mirroring.source}, not a landing zone"
    elif mirroring.target.defaultSchema != target.defaultSchema:
        why = f"has the default schema {mirroring.target.defaultSchema!r}, not {target.defaultSchema!r}"
    if mirroring is None or why is not None:
        raise FABRIC_ITEM_UNFIT(name=name, item=str(found.id), why=why)
    return Created(found, was_there=False, differences=mirroring.target.differences(target))
