"""Lists the folders of the landing zone for the replicator, and names the paths in the mirror's root."""

from __future__ import annotations

import fcntl
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.landing.folders import table_names
from mirror_assets.landing.names import METADATA, PROCESSED, TableName, landing_number
from mirror_assets.monitoring import DEFAULT_SCHEMA
from mirror_assets.standin.errors import MIRROR_BUSY
from mirror_assets.zones import FileInfo, PathChanged, PathExists, PathMissing, Store


@dataclass(frozen=True)
class TableFolder:
    """An existing table folder; `identity` changes when it is deleted and created again."""

    name: TableName
    identity: str


@dataclass(frozen=True)
class FolderFiles:
    """The files of a table folder that a replicator reads: `_metadata.json`, and landing files by number."""

    metadata: FileInfo | None
    landed: dict[int, FileInfo]

    def consecutive(self, number: int) -> list[tuple[int, FileInfo]]:
        """Return the landing files from `number` on, up to the first that is missing (§4.8)."""
        files = []
        while number in self.landed:
            files.append((number, self.landed[number]))
            number += 1
        return files

    def count_after(self, number: int) -> int:
        """Return how many landing files have a higher number."""
        return sum(found > number for found in self.landed)


def table_folders(store: Store) -> list[TableFolder]:
    """List the table folders, by name; ignore underscore names and what can't be a table (§4.1, §4.5)."""
    found = ((name, store.folder_identity(name.folder)) for name in table_names(store))
    return [TableFolder(name, identity) for name, identity in found if identity]


def folder_files(store: Store, folder: TableFolder) -> FolderFiles | None:
    """List the table folder; None when it was deleted or recreated. Other file names are ignored (§4.8)."""
    files = [info for info in store.list(folder.name.folder) if not info.is_folder]
    # Read after the listing: files of a recreated folder must not count as applied files of the old one.
    if store.folder_identity(folder.name.folder) != folder.identity:
        return None
    numbers = ((landing_number(info.name), info) for info in files)
    return FolderFiles(
        metadata=next((info for info in files if info.name == METADATA), None),
        landed={number: info for number, info in numbers if number},
    )


def retire(store: Store, folder: TableFolder, files: FolderFiles, applied: int) -> None:
    """Move applied files to `_ProcessedFiles`, except the last, which publishers may need (§4.14)."""
    done = sorted(number for number in files.landed if number <= applied)[:-1]
    target = f"{folder.name.folder}/{PROCESSED}"
    try:
        if done:
            store.make_folder(target)
    except PathMissing:
        return  # the table folder is being deleted
    for number in done:
        info = files.landed[number]
        try:
            store.rename(info.path, f"{target}/{info.name}", info.etag)
        except (PathMissing, PathChanged, PathExists):
            continue  # a publisher deleted or overwrote it; it is not read again


@dataclass(frozen=True)
class MirrorLayout:
    """The paths in the mirror's root. The stand-in's own folders start with an underscore, which no schema does."""

    root: Path

    def table(self, name: TableName) -> Path:
        """The mirror table's folder; a table without schema is in Fabric's default one."""
        return self.root / (name.schema or DEFAULT_SCHEMA) / name.table

    def rival(self, name: TableName) -> TableName | None:
        """Return the other name of the same mirror table: with the default schema, or without."""
        if name.schema not in (None, DEFAULT_SCHEMA):
            return None
        return TableName(None if name.schema else DEFAULT_SCHEMA, name.table)

    @property
    def records(self) -> Path:
        """The folder of all status files."""
        return self.root / "_status"

    def record(self, name: TableName) -> Path:
        """The table's status file."""
        return self.records / f"{name}.json"

    def drop(self, name: TableName) -> None:
        """Remove the mirror table atomically for its readers: rename it first, then delete it."""
        if not self.table(name).exists():
            return
        self._dropped.mkdir(parents=True, exist_ok=True)
        self.table(name).rename(self._dropped / uuid.uuid4().hex)
        self.sweep()

    def sweep(self) -> None:
        """Delete what this poll, or one that crashed, has dropped."""
        if self._dropped.exists():
            shutil.rmtree(self._dropped)

    @property
    def _dropped(self) -> Path:
        return self.root / "_dropped"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the mirror for one poll; the lock ends with its process. Raises MIRROR_BUSY."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "_poll.lock").open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MIRROR_BUSY(root=self.root) from None
            yield
