"""The tables of a landing zone, by listings alone, and those of them that mirror.yaml no longer names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.names import REBUILDS, TableName, folder_to_table, is_schema_folder, record_to_table
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.zones import Store


def table_names(store: Store) -> tuple[TableName, ...]:
    """Return the tables that have a table folder, by name; ignore folders that can't be a table's."""
    folders = [info.path for info in store.list("") if info.is_folder]
    paths = [path for path in folders if not is_schema_folder(path)]
    for schema in filter(is_schema_folder, folders):
        paths += [info.path for info in store.list(schema) if info.is_folder]
    return tuple(sorted(name for name in map(folder_to_table, paths) if name))


@dataclass(frozen=True)
class Orphan:
    """A table in the landing zone that mirror.yaml does not name, and what is left of it."""

    name: TableName
    left: str

    @property
    def message(self) -> str:
        """Return what is left and how to remove it."""
        return (
            f"{self.name} has {self.left} in the landing zone and is not in mirror.yaml: name it there again, or run "
            f"`mirror-assets drop {self.name}`"
        )


def find_orphans(store: Store, known: Collection[TableName]) -> tuple[Orphan, ...]:
    """Return the orphans, by name. Only folders with a manifest count: others are not ours."""
    left = {name: "a table folder" for name in table_names(store) if name not in known and store.head(name.manifest)}
    for info in store.list(REBUILDS):
        name = None if info.is_folder else record_to_table(info.name)
        if name and name not in known and name not in left and _is_unfinished(store, name):
            left[name] = "an unfinished rebuild or drop"
    return tuple(Orphan(name, left[name]) for name in sorted(left))


def _is_unfinished(store: Store, name: TableName) -> bool:
    """Return whether a rebuild or drop is unfinished, or its record unreadable; a finished one only counts epochs."""
    try:
        record = drive(read_rebuild(name), store)
    except ManifestCorrupt:
        return True
    return record is not None and record.is_running
