"""Caches the addresses of catalogs' tables in this process, and for later ones in the user's cache.

It caches no credentials. A file that can't be read or written is skipped, because the catalog can be queried again.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pydantic

from mirror_assets.user_cache import user_cache


class TableLocation(pydantic.BaseModel):
    """A table's address, its id in the catalog, and when the catalog was queried, in seconds since 1970."""

    model_config = pydantic.ConfigDict(frozen=True)

    uri: str
    table_id: str | None = None
    said: float

    def is_older_than(self, seconds: float) -> bool:
        """Whether the catalog was queried longer ago, by a clock that may have been set back."""
        return not 0 <= time.time() - self.said < seconds


@dataclass
class KnownLocations:
    """The last known locations; `folder` None: the user's cache. Threads may share it."""

    folder: Path | None = None
    _known: dict[str, TableLocation] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def last(self, catalog: str, table: str) -> TableLocation | None:
        """Return the table's last known location; `catalog` identifies the catalog, for example by URL and name."""
        key = _key(catalog, table)
        with self._lock:
            if key not in self._known and (read := self._read(key)) is not None:
                self._known[key] = read
            return self._known.get(key)

    def remember(self, catalog: str, table: str, location: TableLocation) -> None:
        """Store the table's location."""
        key = _key(catalog, table)
        with self._lock:
            self._known[key] = location
            self._write(key, location)

    def _read(self, key: str) -> TableLocation | None:
        try:
            return TableLocation.model_validate_json(self._file(key).read_bytes())
        except (OSError, RuntimeError, pydantic.ValidationError):
            return None

    def _write(self, key: str, location: TableLocation) -> None:
        try:
            file = self._file(key)
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            written = file.with_name(f"{file.name}.{os.getpid()}")
            written.write_text(location.model_dump_json(), encoding="utf-8")
            written.replace(file)
        except (OSError, RuntimeError):
            pass  # the next process queries the catalog again

    def _file(self, key: str) -> Path:
        return (self.folder or user_cache() / "catalogs") / f"{key}.json"


def _key(catalog: str, table: str) -> str:
    return hashlib.sha256(f"{catalog}\n{table}".encode()).hexdigest()[:32]
