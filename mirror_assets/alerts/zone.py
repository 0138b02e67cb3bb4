"""What the landing zone says: tables whose runs fail, and tables that are rebuilt.

The truth of both is kept there, whoever runs: Dagster, the command line, another instance. A quiet zone costs two
listings; a table that fails costs two small reads more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


@dataclass(frozen=True)
class ZoneSeen:
    """What a look at the landing zone has found: what is wrong now, and the newest rebuild of each table.

    A zone that can't be read `is_away`: that is all that is known then.
    """

    wrong: tuple[Condition, ...] = ()
    rebuilds: tuple[RebuildRecord, ...] = ()
    is_away: bool = False


@dataclass
class ZoneLook:
    """Looks at the records of a landing zone; remembers by ETag what they say, so they are read once."""

    store: Store
    names: frozenset[TableName]
    _void: dict[str, str] = field(default_factory=dict)
    _rebuilt: dict[TableName, tuple[str, RebuildRecord | None]] = field(default_factory=dict)
    _missed: int = 0

    def seen(self) -> ZoneSeen | None:
        """Return what the zone says now; None if nobody knows.

        That it can't be read is wrong, too; of what time may resolve, the second time.
        """
        try:
            found = ZoneSeen(tuple(self._failing()), tuple(self._rebuilds()))
        except MirrorError as error:
            self._missed += 1
            return (
                None if self._missed < 2 and is_transient(error.code.value) else ZoneSeen((_away(error),), is_away=True)
            )
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

    def _rebuilds(self) -> Iterator[RebuildRecord]:
        for name, etag in self._records(REBUILDS):
            known, record = self._rebuilt.get(name, ("", None))
            if known != etag:
                try:
                    record = drive(read_rebuild(name), self.store)
                except ManifestCorrupt:
                    continue  # whoever mirrors the table says so
                self._rebuilt[name] = (etag, record)
            if record is not None:
                yield record

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
        text=f"The table folder is dropped and loaded again from a snapshot of the source, because {_why(record)}",
        next_step="nothing: it goes on by itself; `mirror-assets status` shows its step.",
    )


def _why(record: RebuildRecord) -> str:
    return record.reason or "a person wanted it."


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


Epochs = Mapping[str, int]
"""The epoch of each table's newest rebuild that was seen, by the table's name."""


def with_zone(known: Mapping[str, Condition], seen: ZoneSeen | None, rebuilt: Epochs | None) -> dict[str, Condition]:
    """Return what is wrong with the zone's conditions replaced by those seen.

    While the zone can't be read, what it said last still holds. `rebuilt` has what was seen before, None before the
    first look: a rebuild that began and ended between two looks counts for one look.
    """
    if seen is None:
        return dict(known)
    found = {condition.id: condition for condition in seen.wrong}
    if seen.is_away:
        return {**known, **found}
    news = (record for record in seen.rebuilds if not record.is_drop and _is_news(record, rebuilt))
    found |= {condition.id: condition for condition in map(rebuilding, news)}
    return {key: condition for key, condition in known.items() if not key.startswith(ZONE)} | found


def _is_news(record: RebuildRecord, rebuilt: Epochs | None) -> bool:
    return record.is_running or (rebuilt is not None and rebuilt.get(record.table) != record.epoch)


def epochs_seen(seen: ZoneSeen | None, rebuilt: Epochs | None) -> Epochs | None:
    """Return the epochs that the next look starts from."""
    if seen is None or seen.is_away:
        return rebuilt
    return {record.table: record.epoch for record in seen.rebuilds}
