"""Creates and starts a mirrored database; both are safe to run again after any failure.

It never stops one: an open mirror that is stopped and started again replays its whole landing zone (reference
`landing-zone` §4.41).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from mirror_assets.errors import MirrorError, RetryError
from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.features.fabric.database import Database, TargetProperties
from mirror_assets.features.fabric.errors import (
    FABRIC_ITEM_UNFIT,
    FABRIC_NOT_READY,
    FABRIC_UNAVAILABLE,
    MIRRORING_STOPPED,
    FabricRefused,
)
from mirror_assets.monitoring import DatabaseState

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
    """Find or create the mirrored database of this name. Raises fabric_item_unfit, and what the client raises."""
    found = _find(client, name, target)
    if found is not None:
        return replace(found, was_there=True)
    try:
        return Created(client.create(name, target), was_there=False)
    except MirrorError as error:
        # The response was lost, or a retry failed because the first request had created the database.
        is_taken = isinstance(error, FabricRefused) and error.answer in _NAME_TAKEN
        if error.row is not FABRIC_UNAVAILABLE and not is_taken:
            raise
        found = _find(client, name, target)
        if found is None:
            raise
        return found


def start_mirroring(client: FabricClient, database: UUID, *, replay: bool = False) -> bool:
    """Start mirroring, and return False if it is already running.

    Raises fabric_not_ready while it can't be started, mirroring_stopped for a stopped one unless `replay` is set, and
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
    except RetryError as error:
        if error.row is not FABRIC_UNAVAILABLE or client.status(database).state not in _STARTED:
            raise
    return True


def _find(client: FabricClient, name: str, target: TargetProperties) -> Created | None:
    """Return the mirrored database of this name, if any. Raises fabric_item_unfit for one without a landing zone."""
    found = next((database for database in client.databases() if database.name == name), None)
    if found is None:
        return None
    definition = client.definition(found.id)
    why = definition.misfit(target.defaultSchema)
    if why is not None:
        raise FABRIC_ITEM_UNFIT(name=name, item=str(found.id), why=why)
    differences = definition.target.differences(target) if definition.target else ()
    return Created(found, was_there=False, differences=differences)
