"""Drops a table permanently on request, and finds tables that mirror.yaml no longer names.

A table that is taken out of mirror.yaml keeps its folder: nothing is dropped without a request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror_assets.config.errors import did_you_mean
from mirror_assets.config.model import Config
from mirror_assets.errors import RetryError, UnknownOutcome
from mirror_assets.landing.drop import begin_drop, end_drop, is_dropped, remove_table
from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.folders import rebuilt_names, table_names
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.errors import TABLE_NOWHERE
from mirror_assets.zones import Store

if TYPE_CHECKING:
    from mirror_assets.pipeline.rebuild_table import MirrorWait  # loads PySpark, which finding orphans does not need


def require_table(config: Config, store: Store, table: TableName) -> None:
    """Raise SettingError for a table that neither mirror.yaml nor the landing zone has: probably a typo."""
    landed = table_names(store)
    if table in config.names or table in landed or store.list(table.scratch):
        return
    if drive(read_rebuild(table), store) is None:
        known = tuple(str(name) for name in sorted({*config.names, *landed}))
        raise TABLE_NOWHERE(file=config.file, root=store.root, table=str(table), meant=did_you_mean(str(table), known))


def drop_table(store: Store, table: TableName, wait: MirrorWait, report: Callable[[str], None]) -> None:
    """Delete the table folder and what is staged for it, and wait for the mirror to drop the table.

    Continues an interrupted drop, and retries while the folder is in use. Raises mirror_slow, and what the store still
    raises at the end of the wait; running it again continues.
    """
    deadline = time.monotonic() + wait.limit_seconds
    while True:
        try:
            if not drive(is_dropped(table), store):
                record = drive(begin_drop(table), store)
                report(f"{table}: {record.step.value}")
                drive(remove_table(table, record), store)
                wait.until(wait.dropped, f"{table} to be dropped from the mirror")
                drive(end_drop(table, record), store)
        except (RetryError, UnknownOutcome) as error:
            if time.monotonic() >= deadline:
                raise
            report(error.what)
            time.sleep(wait.pause_seconds)
        else:
            return


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
    folders = [name for name in table_names(store) if name not in known and store.head(name.manifest) is not None]
    rebuilt = [name for name in rebuilt_names(store) if name not in known and name not in folders]
    found = [Orphan(name, "a table folder") for name in folders]
    found += [Orphan(name, "an unfinished rebuild or drop") for name in rebuilt if _is_unfinished(store, name)]
    return tuple(sorted(found, key=lambda orphan: orphan.name))


def _is_unfinished(store: Store, name: TableName) -> bool:
    """Return whether a rebuild or drop is unfinished, or its record unreadable; a finished one only counts epochs."""
    try:
        record = drive(read_rebuild(name), store)
    except ManifestCorrupt:
        return True
    return record is not None and record.is_running
