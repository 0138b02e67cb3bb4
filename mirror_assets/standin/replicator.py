"""The local stand-in for Fabric's replicator: the default mirror, and the reference implementation for tests."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake.exceptions import DeltaError

from mirror_assets.errors import MirrorError, RetryError
from mirror_assets.landing.names import TableName, record_to_table
from mirror_assets.monitoring import Pace, TableState
from mirror_assets.standin.errors import (
    MIRROR_BUSY,
    MirrorUnreadable,
    StopReason,
    TableStopped,
    first_line,
    table_stopped,
)
from mirror_assets.standin.mirror_layout import MirrorLayout, TableFolder, table_folders
from mirror_assets.standin.table_poll import TablePoll
from mirror_assets.standin.table_record import (
    ReplicatorFailure,
    TableRecord,
    TableStatus,
    read_record,
    write_json,
)
from mirror_assets.zones import PathMissing, Store

_FAILED_OTHERWISE = "mirror_error"
_PACE = Pace(pause_seconds=2.0, limit_seconds=600.0)


class LocalReplicator:
    """Applies landing files to Delta tables under `mirror_root`, by Microsoft's rules (reference `landing-zone` §4)."""

    def __init__(self, store: Store, mirror_root: Path) -> None:
        """Take the landing zone in `store`; nothing is read or written yet."""
        self._store = store
        self._layout = MirrorLayout(mirror_root.absolute())

    @property
    def pace(self) -> Pace:
        """Short pauses, because each poll applies files itself."""
        return _PACE

    def database(self) -> None:
        """Return None: the stand-in has no database that could be stopped or paused."""

    def retention_days(self) -> None:
        """Return None: the stand-in deletes no old files of its tables by time."""

    def at_once(self) -> LocalReplicator:
        """Return itself: a status request only reads a small file per table."""
        return self

    def poll(self) -> tuple[TableStatus, ...]:
        """Apply landed files, drop tables whose folder was deleted, and return the status of every table.

        A table that fails shows it in its status; the other tables are polled. Raises MIRROR_BUSY.
        """
        with self._layout.locked():
            self._layout.sweep()
            folders = table_folders(self._store)
            present = {folder.name for folder in folders}
            for record in self._records():  # tables whose folder was deleted (§4.33)
                name = TableName.parse(record.name)
                if name not in present:
                    if not _is_name_taken(record):
                        self._layout.drop(name)
                    self._layout.record(name).unlink(missing_ok=True)  # last: a crash repeats the drop
            for folder in folders:
                self._poll_folder(folder, present)
            return self.status()

    def has_work(self) -> bool:
        """Return whether a poll would change something; only lists files, and takes no lock."""
        folders = table_folders(self._store)
        if {TableName.parse(record.name) for record in self._records()} - {folder.name for folder in folders}:
            return True
        return any(self._is_due(folder) for folder in folders)

    def status(self) -> tuple[TableStatus, ...]:
        """Return the status of every table after its last poll, sorted by name."""
        records = sorted(self._records(), key=lambda record: record.name)
        return tuple(self._status(record) for record in records)

    def table(self, name: TableName) -> TableStatus | None:
        """Return the status of one table after its last poll, or None if the mirror doesn't have the table."""
        record = _record_or_failure(self._layout.record(name), name)
        return self._status(record) if record else None

    def poll_table(self, name: TableName) -> TableStatus | None:
        """Poll all tables, unless another process is polling, and return the status of one."""
        try:
            self.poll()
        except RetryError as error:
            if error.row is not MIRROR_BUSY:
                raise
        return self.table(name)

    def _status(self, record: TableRecord) -> TableStatus:
        name = TableName.parse(record.name)
        present = self._store.folder_identity(name.folder) is not None
        return record.status(folder_present=present, mirror_path=self._layout.table(name))

    def _records(self) -> list[TableRecord]:
        """Read the records of all tables; ignore files whose name is not a table's."""
        records = []
        for path in self._layout.records.glob("*.json"):
            name = record_to_table(path.name)
            record = _record_or_failure(path, name) if name else None
            if record and self._layout.record(TableName.parse(record.name)) == path:
                records.append(record)
        return records

    def _is_due(self, folder: TableFolder) -> bool:
        try:
            kept = read_record(self._layout.record(folder.name))
        except MirrorUnreadable:
            return False  # a poll can't fix it: a person has to remove the file
        is_new_folder = kept is not None and kept.identity != folder.identity
        return is_new_folder or TablePoll(self._store, self._layout, folder, kept).is_due()

    def _poll_folder(self, folder: TableFolder, present: set[TableName]) -> None:
        try:
            kept = read_record(self._layout.record(folder.name))
        except MirrorUnreadable:
            return  # the status shows it; a person has to remove the file
        same_folder = kept is not None and kept.identity == folder.identity
        poll = TablePoll(self._store, self._layout, folder, kept if same_folder else None)
        try:
            if kept and not same_folder:  # the folder was deleted and created again (§4.34)
                path = self._layout.record(folder.name)
                write_json(path, kept.model_copy(update={"state": TableState.RESEEDING}))
                if not _is_name_taken(kept):
                    self._layout.drop(folder.name)
                path.unlink()
            self._check_name(folder, present)
            poll.advance()
        except (MirrorError, DeltaError, OSError, pa.ArrowException) as error:
            is_temporary = isinstance(error, (RetryError, PathMissing))  # a file may be deleted during the poll
            state = poll.record.state if is_temporary else TableState.FAILED
            poll.keep(state=state, failure=_failure(error), note=None)

    def _check_name(self, folder: TableFolder, present: set[TableName]) -> None:
        """Raise TableStopped when another folder already mirrors into this table (§4.1)."""
        rival = self._layout.rival(folder.name)
        record = read_record(self._layout.record(rival)) if rival and rival in present else None
        if record and rival and not _is_name_taken(record):
            raise table_stopped(folder.name.folder, StopReason.NAME_TAKEN, f"{rival.folder} is the same table")


def _record_or_failure(path: Path, name: TableName) -> TableRecord | None:
    """Read the record; if it is unreadable, return a failed record with the error."""
    try:
        return read_record(path)
    except MirrorUnreadable as error:
        return TableRecord(name=str(name), identity="", state=TableState.FAILED, failure=_failure(error))


def _failure(error: Exception) -> ReplicatorFailure:
    if isinstance(error, TableStopped):
        return ReplicatorFailure(code=error.reason.value, message=str(error))
    code = error.code.value if isinstance(error, MirrorError) else _FAILED_OTHERWISE
    return ReplicatorFailure(code=code, message=first_line(error))


def _is_name_taken(record: TableRecord) -> bool:
    return record.failure is not None and record.failure.code == StopReason.NAME_TAKEN.value
