"""What was asked of the server."""

from __future__ import annotations

import fnmatch
import threading
from collections import Counter
from dataclasses import dataclass

from mirror_assets_tests.worlds.onelake.faults import Fault
from mirror_assets_tests.worlds.onelake.operations import Operation


@dataclass(frozen=True)
class Record:
    """One request; `status` is None when it got no answer, and `path` is the one below the item."""

    operation: Operation
    method: str
    path: str
    status: int | None
    bytes_in: int
    bytes_out: int
    faults: tuple[Fault, ...] = ()


class RequestLog:
    """Every request since the last reset, by the order of their ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: list[Record] = []

    def add(self, record: Record) -> None:
        """Keep a record."""
        with self._lock:
            self._records.append(record)

    def reset(self) -> None:
        """Forget all records."""
        with self._lock:
            self._records = []

    @property
    def records(self) -> tuple[Record, ...]:
        """All records, also of Entra's requests."""
        with self._lock:
            return tuple(self._records)

    @property
    def storage(self) -> tuple[Record, ...]:
        """The records of requests to OneLake."""
        return tuple(record for record in self.records if record.operation.is_storage)

    def counts(self, path: str = "*") -> Counter[Operation]:
        """How many requests of each kind went to OneLake, for paths that the pattern fits."""
        return Counter(r.operation for r in self.storage if fnmatch.fnmatchcase(r.path, path))
