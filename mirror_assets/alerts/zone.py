"""What the landing zone says is wrong: tables whose runs fail, and tables that are rebuilt.

The truth of both is kept there, whoever runs: Dagster, the command line, another instance. A quiet zone costs two
listings; a table that fails costs two small reads more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mirror_assets.alerts.causes import cause_of, is_transient, split_next
from mirror_assets.alerts.conditions import Condition
from mirror_assets.config.alerts import Severity, Topic
from mirror_assets.errors import MirrorError
from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.failures import FailureRecord, read_failure
from mirror_assets.landing.names import FAILURES, REBUILDS, TableName, record_to_table
from mirror_assets.landing.rebuild import RebuildRecord, read_rebuild
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.storage import Store

ZONE = "zone:"
_AWAY = f"{ZONE}away"


def table_id(table: str) -> str:
    """Return the id of the condition that a table's runs fail."""
    return f"{ZONE}table:{table}"


@dataclass
class ZoneLook:
    """Looks at the records of a landing zone; remembers by ETag those that say nothing, so they are read once."""

    store: Store
    names: frozenset[TableName]
    _void: dict[str, str] = field(default_factory=dict)
    _missed: int = 0

    def conditions(self) -> tuple[Condition, ...] | None:
        """Return what is wrong now; None if nobody knows.

        A zone that can't be read is a condition, and the only one; of what time may resolve, the second time.
        """
        try:
            found = (*self._failing(), *self._rebuilt())
        except MirrorError as error:
            self._missed += 1
            return None if self._missed < 2 and is_transient(error.code.value) else (_away(error),)
        self._missed = 0
        return found

    def _failing(self) -> Iterator[Condition]:
        for name, etag in self._records(FAILURES):
            if self._void.get(name.failure_record) == etag:
                continue
            record = drive(read_failure(name), self.store)
            if record is None or not self._stands(name, record):
                self._void[name.failure_record] = etag
            elif record.rebuild is None and not (record.count < 2 and is_transient(record.code.value)):
                yield failing(record)

    def _stands(self, name: TableName, record: FailureRecord) -> bool:
        """Return whether nothing has landed since; once that has, the same record never counts again."""
        try:
            current = drive(read_manifest(name), self.store)
            return record.stands(current.manifest if current else None, drive(read_rebuild(name), self.store))
        except ManifestCorrupt:
            return True

    def _rebuilt(self) -> Iterator[Condition]:
        for name, etag in self._records(REBUILDS):
            if self._void.get(name.rebuild_record) == etag:
                continue
            try:
                record = drive(read_rebuild(name), self.store)
            except ManifestCorrupt:
                continue  # whoever mirrors the table says so
            if record is not None and record.is_running and not record.is_drop:
                yield rebuilding(record)
            else:
                self._void[name.rebuild_record] = etag

    def _records(self, folder: str) -> Iterator[tuple[TableName, str]]:
        """Yield the tables of this configuration that have a record there, with its ETag."""
        for info in self.store.list(folder):
            name = None if info.is_folder else record_to_table(info.name)
            if name is not None and name in self.names:
                yield name, info.etag


def failing(record: FailureRecord) -> Condition:
    """Return the condition of a table whose runs have failed since it last landed something."""
    what, next_step = split_next(record.message)
    cause = cause_of(record.code.value, "failing", record.message, record.table)
    return Condition(
        id=table_id(record.table),
        topic=Topic.TABLE,
        severity=Severity.ERROR,
        cause=cause.key,
        subject=record.table,
        what=f"can't be mirrored ({record.code.value})",
        text=what,
        next_step=next_step,
        code=record.code.value,
        since_ms=max(0, record.failed_ms),
        joins=cause.joins,
    )


def rebuilding(record: RebuildRecord) -> Condition:
    """Return the condition of a table that is rebuilt: all of them are one incident, until the last has ended."""
    return Condition(
        id=f"{ZONE}rebuild:{record.table}",
        topic=Topic.REBUILD,
        severity=Severity.INFO,
        cause="rebuild",
        subject=record.table,
        what="rebuild",
        text="The table folder is dropped and loaded again from a snapshot of the source.",
        next_step="nothing: it goes on by itself; `mirror-assets status` shows its step.",
    )


def _away(error: MirrorError) -> Condition:
    cause = cause_of(error.code.value, "away", error.what, "")
    return Condition(
        id=_AWAY,
        topic=Topic.TABLE,
        severity=Severity.ERROR,
        cause=cause.key,
        subject="landing zone",
        what=f"can't be read ({error.code.value})",
        text=error.what,
        next_step=error.next_step,
        code=error.code.value,
        joins=True,
    )


def with_zone(known: Mapping[str, Condition], found: Iterable[Condition] | None) -> dict[str, Condition]:
    """Return what is wrong with the zone's conditions replaced by those found.

    While the zone can't be read, what it said last still holds.
    """
    if found is None:
        return dict(known)
    seen = {condition.id: condition for condition in found}
    if _AWAY in seen:
        return {**known, **seen}
    return {key: condition for key, condition in known.items() if not key.startswith(ZONE)} | seen
