"""The tables of a landing zone, by listings alone."""

from __future__ import annotations

from mirror_assets.landing.names import REBUILDS, TableName, folder_to_table, is_schema_folder, record_to_table
from mirror_assets.zones import Store


def table_names(store: Store) -> tuple[TableName, ...]:
    """Return the tables that have a table folder, by name; ignore folders that can't be a table's."""
    folders = [info.path for info in store.list("") if info.is_folder]
    paths = [path for path in folders if not is_schema_folder(path)]
    for schema in filter(is_schema_folder, folders):
        paths += [info.path for info in store.list(schema) if info.is_folder]
    return tuple(sorted(name for name in map(folder_to_table, paths) if name))


def rebuilt_names(store: Store) -> tuple[TableName, ...]:
    """Return the tables that have a rebuild record, finished or not, by name."""
    names = (record_to_table(info.name) for info in store.list(REBUILDS) if not info.is_folder)
    return tuple(sorted(name for name in names if name))
