"""The landing zone as a replicator sees it: table folders, landing files in sequence, and where processed ones go."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.landing.folders import table_names
from mirror_assets.landing.names import (
    METADATA,
    PROCESSED,
    TableName,
    landing_number,
)
from mirror_assets.storage import FileInfo, PathChanged, PathExists, PathMissing, Store


@dataclass(frozen=True)
class TableFolder:
    """A table folder that exists, in this epoch of it."""

    name: TableName
    identity: str


@dataclass(frozen=True)
class FolderFiles:
    """The files of one table folder that matter: the declaration, and landing files by number."""

    metadata: FileInfo | None
    landed: dict[int, FileInfo]

    def run(self, number: int) -> list[tuple[int, FileInfo]]:
        """The landing files from `number` on, up to the first that is missing (§4.8)."""
        files = []
        while number in self.landed:
            files.append((number, self.landed[number]))
            number += 1
        return files

    def behind(self, number: int) -> int:
        """How many landing files have a higher number."""
        return sum(found > number for found in self.landed)


def table_folders(store: Store) -> list[TableFolder]:
    """Every table folder, by name; underscore names and what can't be a table are ignored (§4.1, §4.5)."""
    found = ((name, store.folder_identity(name.folder)) for name in table_names(store))
    return [TableFolder(name, identity) for name, identity in found if identity]


def folder_files(store: Store, folder: TableFolder) -> FolderFiles | None:
    """What is in the table folder, or None when it is gone or made again meanwhile; other names are ignored (§4.8)."""
    files = [info for info in store.list(folder.name.folder) if not info.is_folder]
    # Looked at after the listing: were these files of a new epoch, the old epoch's numbers would seem to cover them.
    if store.folder_identity(folder.name.folder) != folder.identity:
        return None
    numbers = ((landing_number(info.name), info) for info in files)
    return FolderFiles(
        metadata=next((info for info in files if info.name == METADATA), None),
        landed={number: info for number, info in numbers if number},
    )


def retire(store: Store, folder: TableFolder, files: FolderFiles, applied: int) -> None:
    """Move applied files away, except the last: publishers number by it (§4.14)."""
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
            continue  # a publisher deleted or overwrote it: nobody reads it again
