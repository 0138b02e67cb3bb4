"""The local stand-in for Fabric's replicator: the default mirror, and the reference implementation for tests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
from deltalake.exceptions import DeltaError

from mirror_assets.errors import MirrorError, RetryError
from mirror_assets.landing.names import TableName, record_to_table
from mirror_assets.landing.receipt import read_receipt
from mirror_assets.monitoring import Pace, TableState
from mirror_assets.standin.errors import (
    MIRROR_BUSY,
    MirrorUnreadable,
    StopReason,
    TableStopped,
    first_line,
    table_stopped,
)
from mirror_assets.standin.landed_file import LandedFile, MirrorColumns, TableMetadata, read_landed_file, read_metadata
from mirror_assets.standin.mirror_layout import (
    FolderFiles,
    MirrorLayout,
    TableFolder,
    folder_files,
    retire,
    table_folders,
)
from mirror_assets.standin.mirror_table import Applied, MirrorTable, net_changes
from mirror_assets.standin.table_record import (
    Evidence,
    ReplicatorFailure,
    TableRecord,
    TableStatus,
    read_record,
    write_json,
)
from mirror_assets.telemetry.record import SliceWork, record_applied, table_gauges
from mirror_assets.zones import FileInfo, PathMissing, Store

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
        with suppress(MIRROR_BUSY.error):
            self.poll()
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


_BATCH_BYTES = 512 << 20


class TablePoll:
    """One poll of one table; `kept` is the record of its folder, None for a new folder."""

    def __init__(self, store: Store, layout: MirrorLayout, folder: TableFolder, kept: TableRecord | None) -> None:
        self._store, self._layout, self._folder = store, layout, folder
        self._kept = kept
        self.record = kept or TableRecord(name=str(folder.name), identity=folder.identity)

    def advance(self) -> None:
        """Apply all valid waiting files and write the record. Raises MirrorUnreadable, and what the store raises."""
        files = folder_files(self._store, self._folder)
        if files is None or (files.metadata is None and self._kept is None):
            return  # the folder was deleted meanwhile, or never had a `_metadata.json`
        if files.metadata is None:
            note = "waits for _metadata.json: a table without it is not replicated"
            self.keep(state=TableState.STOPPED, note=note, failure=None)
        elif not self._still_failed():
            try:
                self._take(files, files.metadata)
            except TableStopped as stopped:
                self._stop(stopped, files)
        self.keep(waiting_files=files.count_after(self.record.applied_number))
        retire(self._store, self._folder, files, self.record.applied_number)

    def is_due(self) -> bool:
        """Whether the next landing file exists, or a file that the table failed on has changed."""
        files = folder_files(self._store, self._folder)
        if files is None or files.metadata is None:
            return files is not None and self._kept is not None and self._kept.state is not TableState.STOPPED
        if self._kept is None or self.record.failure is not None:
            return not self._still_failed()
        return bool(files.consecutive(self.record.applied_number + 1))

    def keep(self, **changes: object) -> None:
        """Update the record, and write it if it has changed."""
        self.record = self.record.model_copy(update=changes)
        if self.record != self._kept:
            write_json(self._layout.record(self._folder.name), self.record)
            self._kept = self.record

    def _still_failed(self) -> bool:
        """Whether the files that the table failed on are unchanged."""
        evidence = self.record.failure.evidence if self.record.failure else ()
        heads = [(item.etag, self._store.head(item.path)) for item in evidence]
        return bool(heads) and all(head is not None and head.etag == etag for etag, head in heads)

    def _take(self, files: FolderFiles, declared: FileInfo) -> None:
        metadata = read_metadata(self._store, declared)
        keys = self.record.key_columns
        if keys is not None and metadata.keys != keys:
            why = f"keyColumns were declared as {list(keys)} and are now {list(metadata.keys)}"
            raise table_stopped(declared.path, StopReason.KEYS_CHANGED, why)
        exists = (self._layout.table(self._folder.name) / "_delta_log").is_dir()
        self._check_mirror(exists=exists)
        # Keys can't change once files are applied with them, so they are recorded first.
        self.keep(key_columns=metadata.keys or None)
        first = self.record.applied_number == 0
        # The record was lost if it has no files but the mirror table exists; the table's Delta log has the number.
        if files.consecutive(self.record.applied_number + 1) or (first and exists):
            self.keep(state=TableState.SNAPSHOTTING if first else TableState.REPLICATING, note=None, failure=None)
            self._apply(files, metadata)
        number = self.record.applied_number
        waiting = files.count_after(number)
        note = f"waits for landing file {number + 1}: {waiting} later files wait after the gap" if waiting else None
        self.keep(state=TableState.REPLICATING if number else TableState.INITIALIZED, note=note, failure=None)

    def _check_mirror(self, *, exists: bool) -> None:
        if self.record.applied_number and not exists:
            why = f"the mirror table, to which {self.record.applied_number} landing files were applied, was deleted"
            raise table_stopped(str(self._layout.table(self._folder.name)), StopReason.MIRROR_LOST, why)

    def _apply(self, files: FolderFiles, metadata: TableMetadata) -> None:
        """Apply the waiting files in batches that fit in memory, up to a bad file."""
        mirror = self._mirror()
        # After a crash, the record may be older than the Delta log.
        self._note_progress(mirror)
        waiting = files.consecutive(self.record.applied_number + 1)
        for batch in self._batches(waiting, metadata, mirror.columns):
            began_ns = time.time_ns()
            before, columns = mirror.applied, batch[-1].columns
            applied = Applied(
                number=batch[-1].number,
                rows=before.rows + sum(file.rows.num_rows for file in batch),
                bytes=before.bytes + sum(file.info.size for file in batch),
            )
            mirror.apply(net_changes(batch, metadata.keys, columns), columns, applied)
            self._note_progress(mirror)
            if table_gauges() is not None:  # reading the slices from the footers costs time
                record_applied(self._slices(batch), began_ns)
        mirror.tidy()

    def _slices(self, batch: list[LandedFile]) -> list[SliceWork]:
        """Return the slices of the files, from their receipts. Only traces need them: Fabric knows no slices."""
        slices: dict[str, None] = {}
        for file in batch:
            with suppress(MirrorError):
                receipt = read_receipt(self._store, file.info.path)
                slices |= {str(receipt.slice): None} if receipt else {}
        return [SliceWork(self._store.root, str(self._folder.name), slice_) for slice_ in slices]

    def _mirror(self) -> MirrorTable:
        path = self._layout.table(self._folder.name)
        mirror = MirrorTable(path, self._folder.identity)
        if mirror.exists:
            return mirror
        self._check_mirror(exists=False)
        self._layout.drop(self._folder.name)  # an earlier folder's table, left by a crash or a lost record
        return MirrorTable(path, self._folder.identity)

    def _batches(
        self, waiting: list[tuple[int, FileInfo]], metadata: TableMetadata, columns: MirrorColumns | None
    ) -> Iterator[list[LandedFile]]:
        """Yield batches of valid files of about 512 MiB. Raises TableStopped for a bad file, after all earlier ones."""
        batch: list[LandedFile] = []
        for number, info in waiting:
            try:
                batch.append(read_landed_file(self._store, info, number, metadata, columns))
            except TableStopped:
                if batch:
                    yield batch
                raise
            columns = batch[-1].columns
            if sum(file.rows.nbytes for file in batch) >= _BATCH_BYTES:
                yield batch
                batch = []
        if batch:
            yield batch

    def _note_progress(self, mirror: MirrorTable) -> None:
        applied = mirror.applied
        if applied.number != self.record.applied_number:
            self.keep(
                applied_number=applied.number,
                processed_rows=applied.rows,
                processed_bytes=applied.bytes,
                mirror_rows=mirror.rows,
                last_sync=datetime.now(timezone.utc),
            )

    def _stop(self, stopped: TableStopped, files: FolderFiles) -> None:
        etags = {info.path: info.etag for info in [files.metadata, *files.landed.values()] if info}
        # Record the listing's ETags, not newer ones, so that a file replaced meanwhile is read again.
        paths = [stopped.path, self._folder.name.metadata] if stopped.path in etags else []
        evidence = tuple(Evidence(path=path, etag=etags[path]) for path in dict.fromkeys(paths))
        failure = ReplicatorFailure(code=stopped.reason.value, message=str(stopped), evidence=evidence)
        self.keep(state=TableState.FAILED, failure=failure, note=None)
