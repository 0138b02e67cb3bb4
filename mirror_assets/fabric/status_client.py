"""The read requests of Fabric's API for a mirrored database, and a cache of their responses for many tables."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar, cast
from uuid import UUID

from mirror_assets.errors import MirrorError
from mirror_assets.fabric.database import DatabaseStatus, Definition, ReportedTable

_Response = TypeVar("_Response")


class StatusClient(Protocol):
    """The requests of FabricClient that change nothing."""

    def status(self, database: UUID) -> DatabaseStatus:
        """Read the state of the mirrored database."""
        ...

    def tables(self, database: UUID) -> tuple[ReportedTable, ...]:
        """List the tables of the mirrored database."""
        ...

    def definition(self, database: UUID) -> Definition:
        """Read the definition."""
        ...


class CachedStatusClient:
    """Sends each request once for all threads and caches the response, or the error: Fabric limits requests."""

    def __init__(self, client: StatusClient) -> None:
        """Start with an empty cache."""
        self._client = client
        self._responses: dict[tuple[str, UUID], object] = {}
        self._lock = threading.Lock()

    def status(self, database: UUID) -> DatabaseStatus:
        """Return the state of the mirrored database."""
        return self._once("status", database, self._client.status)

    def tables(self, database: UUID) -> tuple[ReportedTable, ...]:
        """Return the tables of the mirrored database."""
        return self._once("tables", database, self._client.tables)

    def definition(self, database: UUID) -> Definition:
        """Return the definition."""
        return self._once("definition", database, self._client.definition)

    def _once(self, request: str, database: UUID, send: Callable[[UUID], _Response]) -> _Response:
        with self._lock:
            if (request, database) not in self._responses:
                try:
                    self._responses[request, database] = send(database)
                except MirrorError as error:
                    self._responses[request, database] = error
            response = self._responses[request, database]
        if isinstance(response, MirrorError):
            raise response
        return cast("_Response", response)
