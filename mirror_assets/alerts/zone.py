"""Reads the conditions of tables in the landing zone: failed runs, holds and rebuilds.

The landing zone is the truth for all of them, whether Dagster, the command line or another instance wrote it. A zone
without failures costs two listings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from mirror_assets.alerts.conditions import Condition, Kind, may_pass
from mirror_assets.config.alerts import Severity
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.failures import FailureRecord, read_failure
from mirror_assets.landing.names import FAILURES, REBUILDS, TableName, record_to_table
from mirror_assets.landing.rebuild import RebuildRecord, read_rebuild
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.storage import FileInfo, Store

# A rebuild that has ended is a condition for so long, so that a quick one is reported.
_REBUILT_SECONDS = 120.0


@dataclass
class ZoneReader:
    """Reads the records of a landing zone; a record that is void, or of a rebuild, is read once."""

    store: Store
    _void: dict[str, str] = field(default_factory=dict)
    _rebuilds: dict[str, tuple[str, RebuildRecord | None]] = field(default_factory=dict)

    def conditions(
        self, tables: Collection[TableName], is_held: Callable[[TableName], bool], now: float
    ) -> list[Condition]:
        """Return the conditions of these tables; a person decides about rebuilds where `is_held`.

        Raises what the store raises.
        """
        failed = [found for name, info in self._records(FAILURES, tables) if (found := self._failure(name, info))]
        conditions = [failing(one) for one in failed if one.rebuild is None]
        conditions += [held(one.table, one.rebuild) for one in failed if one.rebuild and is_held(_name(one))]
        return [*conditions, *self._rebuilding(tables, now)]

    def _failure(self, name: TableName, info: FileInfo) -> FailureRecord | None:
        """Return the failure if it still counts; once it doesn't, the same record never counts again."""
        if self._void.get(info.path) == info.etag:
            return None
        record = drive(read_failure(name), self.store)
        try:
            current = drive(read_manifest(name), self.store)
            rebuild = drive(read_rebuild(name), self.store)
        except ManifestCorrupt:
            return record
        if record is not None and record.stands(current.manifest if current else None, rebuild):
            return record
        self._void[info.path] = info.etag
        return None

    def _rebuilding(self, tables: Collection[TableName], now: float) -> Iterator[Condition]:
        for name, info in self._records(REBUILDS, tables):
            etag, record = self._rebuilds.get(info.path, ("", None))
            if etag != info.etag:
                try:
                    record = drive(read_rebuild(name), self.store)
                except ManifestCorrupt:
                    record = None  # the run that mirrors the table reports it
                self._rebuilds[info.path] = (info.etag, record)
            is_recent = info.modified is not None and now - info.modified < _REBUILT_SECONDS
            if record is not None and not record.is_drop and (record.is_running or is_recent):
                yield _rebuild(record)

    def _records(self, folder: str, tables: Collection[TableName]) -> Iterator[tuple[TableName, FileInfo]]:
        """Yield the tables that have a record in the folder."""
        for info in self.store.list(folder):
            name = None if info.is_folder else record_to_table(info.name)
            if name is not None and name in tables:
                yield name, info


def _name(record: FailureRecord) -> TableName:
    return TableName.parse(record.table)


def failing(record: FailureRecord) -> Condition:
    """Return the condition of a table whose runs have failed since it last landed something."""
    code = record.code.value
    return Condition(
        id=f"table:{record.table}",
        kind=Kind.TABLE,
        subject=record.table,
        what=f"can't be mirrored ({code})",
        text=record.message,
        code=code,
        is_passing=record.count < 2 and may_pass(code),
    )


def held(table: str, text: str, page: str | None = None) -> Condition:
    """Return the condition of a table that waits for a person to rebuild it."""
    return Condition(
        id=f"held:{table}",
        kind=Kind.HELD,
        subject=table,
        what="waits for a person to have it rebuilt",
        text=text,
        next_step=f"launch the job `rebuild`, or run `mirror-assets rebuild {table}`.",
        code=ErrorCode.TABLE_HELD.value,
        page=page,
    )


def _rebuild(record: RebuildRecord) -> Condition:
    reason = record.reason or "a person started it."
    return Condition(
        id=f"rebuild:{record.table}",
        kind=Kind.REBUILD,
        subject=record.table,
        what="rebuild",
        text=f"The table folder is dropped and loaded again from a snapshot of the source, because {reason}",
        next_step="nothing: it continues automatically; `mirror-assets status` shows its step.",
        severity=Severity.INFO,
    )
