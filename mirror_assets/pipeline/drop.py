"""Drops a table for good: its table folder and what is staged for it, until the mirror has dropped it, too.

Never done by itself, and never needed to go on: a table that is taken out of mirror.yaml keeps its folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.config import Config
from mirror_assets.errors import ErrorCode, RetryError, SettingError, UnknownOutcome
from mirror_assets.landing.drop import begin_drop, end_drop, is_dropped, remove_table
from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.folders import rebuilt_names, table_names
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.rebuild import MirrorWait
from mirror_assets.storage import Store


class TableAbsent(SettingError):
    """There is no such table, neither in mirror.yaml nor in the landing zone."""

    code = ErrorCode.CONFIG_INVALID

    def __init__(self, name: str, file: Path, zone: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(f"neither {file} nor {zone} has a table {name!r}.", f"use one of: {', '.join(known)}.")


def require_table(config: Config, store: Store, table: TableName) -> None:
    """Raise TableAbsent for a table that nothing tells of: most likely, its name is misspelt."""
    landed = table_names(store)
    if table in config.names or table in landed or store.list(table.scratch):
        return
    if drive(read_rebuild(table), store) is None:
        known = tuple(str(name) for name in sorted({*config.names, *landed}))
        raise TableAbsent(str(table), config.file, store.root, known)


def drop_table(store: Store, table: TableName, wait: MirrorWait, report: Callable[[str], None]) -> None:
    """Drop the table, or go on with a drop that was interrupted; a folder that is in use is asked for again and again.

    Raises MirrorSlow, and what the store raises to the end of the wait; whatever is raised, running it again goes on.
    """
    deadline = time.monotonic() + wait.limit_seconds
    while True:
        try:
            if not drive(is_dropped(table), store):
                _drop(store, table, wait, report)
        except (RetryError, UnknownOutcome) as error:
            if time.monotonic() >= deadline:
                raise
            report(error.what)
            time.sleep(wait.pause_seconds)
        else:
            return


def _drop(store: Store, table: TableName, wait: MirrorWait, report: Callable[[str], None]) -> None:
    record = drive(begin_drop(table), store)
    report(f"{table}: {record.step.value}")
    drive(remove_table(table, record), store)
    wait.until(wait.dropped, f"{table} to be dropped from the mirror")
    drive(end_drop(table, record), store)


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
    """Whether the record tells of work half done, or can't be read; a finished one only counts the table's epochs."""
    try:
        record = drive(read_rebuild(name), store)
    except ManifestCorrupt:
        return True
    return record is not None and record.is_running
