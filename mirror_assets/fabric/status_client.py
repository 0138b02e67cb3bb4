"""The part of Fabric's interface that reports the state of a mirrored database, and a cache of it for many tables."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar, cast
from uuid import UUID

from mirror_assets.errors import MirrorError
from mirror_assets.fabric.database import DatabaseStatus, Definition, ReportedTable

_Answer = TypeVar("_Answer")


class StatusClient(Protocol):
    """The requests that change nothing; see FabricClient."""

    def status(self, database: UUID) -> DatabaseStatus:
        """Ask for the state of the mirrored database."""
        ...

    def tables(self, database: UUID) -> tuple[ReportedTable, ...]:
        """List the tables of the mirrored database."""
        ...

    def definition(self, database: UUID) -> Definition:
        """Read the definition."""
        ...


class AskedOnce:
    """Asks each question once for all threads, and repeats the answer, or the error: Fabric limits requests."""

    def __init__(self, client: StatusClient) -> None:
        """Ask nothing yet."""
        self._client = client
        self._answers: dict[tuple[str, UUID], object] = {}
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

    def _once(self, question: str, database: UUID, ask: Callable[[UUID], _Answer]) -> _Answer:
        with self._lock:
            if (question, database) not in self._answers:
                try:
                    self._answers[question, database] = ask(database)
                except MirrorError as error:
                    self._answers[question, database] = error
            answer = self._answers[question, database]
        if isinstance(answer, MirrorError):
            raise answer
        return cast("_Answer", answer)
