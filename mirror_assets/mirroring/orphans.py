"""Tables that the landing zone has and mirror.yaml does not: renamed there, or taken out. Told, and never deleted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.folders import rebuilt_names, table_names
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.storage import Store


@dataclass(frozen=True)
class Orphan:
    """A table that nobody mirrors any more, and what is left of it."""

    name: TableName
    left: str

    @property
    def message(self) -> str:
        """What is there, and how to be rid of it."""
        return (
            f"{self.name} has {self.left} in the landing zone and is not in mirror.yaml: name it there again, or run "
            f"`mirror-assets drop {self.name}`"
        )


def find_orphans(store: Store, known: Collection[TableName]) -> tuple[Orphan, ...]:
    """The orphans, by name. Only folders of ours count: those with a manifest."""
    folders = [name for name in table_names(store) if name not in known and store.head(name.manifest) is not None]
    rebuilt = [name for name in rebuilt_names(store) if name not in known and name not in folders]
    found = [Orphan(name, "a table folder") for name in folders]
    found += [Orphan(name, "an unfinished rebuild or drop") for name in rebuilt if _is_unfinished(store, name)]
    return tuple(sorted(found, key=lambda orphan: orphan.name))


def _is_unfinished(store: Store, name: TableName) -> bool:
    """Whether the record tells of work half done, or can't be read; a finished one only counts the table's lives."""
    try:
        record = drive(read_rebuild(name), store)
    except ManifestCorrupt:
        return True
    return record is not None and record.is_running
