"""Where everything lies under the mirror's root, and the lock that one poll holds."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import DEFAULT_SCHEMA
from mirror_assets.replicator.errors import MirrorBusy

_MAX_FILE_NAME = 255


@dataclass(frozen=True)
class MirrorLayout:
    """The paths below `root`. Underscore names are free: no schema can have one."""

    root: Path

    def table(self, name: TableName) -> Path:
        """The mirror table's folder; a table without schema is in Fabric's default one."""
        return self.root / (name.schema or DEFAULT_SCHEMA) / name.table

    def rival(self, name: TableName) -> TableName | None:
        """The other name of the same mirror table: with the default schema, or without."""
        if name.schema not in (None, DEFAULT_SCHEMA):
            return None
        return TableName(None if name.schema else DEFAULT_SCHEMA, name.table)

    @property
    def records(self) -> Path:
        """The folder of all status files."""
        return self.root / "_status"

    @property
    def summary(self) -> Path:
        """The summary of all tables."""
        return self.root / "_monitoring" / "tables.json"

    def record(self, name: TableName) -> Path:
        """The table's status file."""
        file = f"{name}.json"
        if len(file.encode()) > _MAX_FILE_NAME:
            file = f"{hashlib.sha256(str(name).encode()).hexdigest()}.json"
        return self.records / file

    def drop(self, name: TableName) -> None:
        """Remove the mirror table in one step for its readers: moved away first, deleted then."""
        if not self.table(name).exists():
            return
        self._dropped.mkdir(parents=True, exist_ok=True)
        self.table(name).rename(self._dropped / uuid.uuid4().hex)
        self.sweep()

    def sweep(self) -> None:
        """Delete what dropped tables, of this poll or one that crashed, have left."""
        if self._dropped.exists():
            shutil.rmtree(self._dropped)

    @property
    def _dropped(self) -> Path:
        return self.root / "_dropped"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the mirror for one poll. Raises MirrorBusy; the lock ends with its process, so it never goes stale."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "_poll.lock").open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MirrorBusy(self.root) from None
            yield
