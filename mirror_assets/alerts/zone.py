"""Reads the conditions of tables in the landing zone: failed runs, holds and rebuilds.

The landing zone is the truth for all of them, whether Dagster, the command line or another instance wrote it. A zone
without failures costs two listings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from mirror_assets.alerts.conditions import Condition, ConditionKind, may_pass, with_next
from mirror_assets.config.alerts import Severity
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.failures import FailureRecord, read_failure
from mirror_assets.landing.names import FAILURES, REBUILDS, TableName, record_to_table
from mirror_assets.landing.rebuild import RebuildRecord, read_rebuild
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.storage import FileInfo, Store

# A rebuild that has ended remains a condition for this long, so that a quick one is reported.
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
        failed = [(name, self._failure(name, info)) for name, info in self._records(FAILURES, tables)]
        conditions = [failing(one) for _, one in failed if one and one.rebuild is None]
        conditions += [held(one.table, one.rebuild) for name, one in failed if one and one.rebuild and is_held(name)]
        return [*conditions, *self._rebuilding(tables, now)]

    def _failure(self, name: TableName, info: FileInfo) -> FailureRecord | None:
        """Return the failure if it still counts; once it doesn't, the same record never counts again."""
        if self._void.get(info.path) == info.etag:
            return None
        record = read_failure(self.store, name)
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
                record = None
                with suppress(ManifestCorrupt):  # the run that mirrors the table reports it
                    record = drive(read_rebuild(name), self.store)
                self._rebuilds[info.path] = (info.etag, record)
            is_recent = info.modified is not None and now - info.modified < _REBUILT_SECONDS
            if record is not None and not record.is_drop and (record.is_running or is_recent):
                reason = record.reason or "a person started it."
                text = f"The table folder is dropped and loaded again from a snapshot of the source, because {reason}"
                text = with_next(text, "nothing: it continues automatically; `mirror-assets status` shows its step.")
                kind, table = ConditionKind.REBUILD, record.table
                yield Condition(f"rebuild:{table}", kind, table, "rebuild", text, Severity.INFO)

    def _records(self, folder: str, tables: Collection[TableName]) -> Iterator[tuple[TableName, FileInfo]]:
        """Yield the tables that have a record in the folder."""
        for info in self.store.list(folder):
            name = None if info.is_folder else record_to_table(info.name)
            if name is not None and name in tables:
                yield name, info


def failing(record: FailureRecord) -> Condition:
    """Return the condition of a table whose runs have failed since it last landed something."""
    table, code = record.table, record.code.value
    what, is_passing = f"can't be mirrored ({code})", record.count < 2 and may_pass(code)
    return Condition(
        f"table:{table}", ConditionKind.TABLE, table, what, record.message, code=code, is_passing=is_passing
    )


def held(table: str, text: str, page: str | None = None) -> Condition:
    """Return the condition of a table that waits for a person to rebuild it."""
    what, code = "waits for a person to have it rebuilt", ErrorCode.TABLE_HELD.value
    text = with_next(text, f"launch the job `rebuild`, or run `mirror-assets rebuild {table}`.")
    return Condition(f"held:{table}", ConditionKind.HELD, table, what, text, code=code, page=page)
