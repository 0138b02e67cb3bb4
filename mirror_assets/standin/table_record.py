"""The stand-in's status file per table.

It only shows the state. The Delta log of each mirror table decides which landing files are applied.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic import AfterValidator, AwareDatetime

from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.format import Count, Manifest, Record, first_problem
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import MonitoredTable, TableState
from mirror_assets.standin.errors import MIRROR_UNREADABLE


@dataclass(frozen=True)
class TableStatus(MonitoredTable):
    """The status of one table of the local stand-in; `applied_number` is 0 before the first landing file."""

    applied_number: int
    mirror_rows: int
    mirror_path: Path

    @property
    def location(self) -> str:
        """The mirror table's folder."""
        return str(self.mirror_path)

    def has_applied(self, manifest: Manifest) -> bool:
        """Whether the last committed landing file is applied."""
        return self.applied_number >= manifest.next_number - 1


def _table_name(text: str) -> str:
    try:
        return str(TableName.parse(text))
    except NameRefused as error:
        raise ValueError(error.what) from None


Name = Annotated[str, AfterValidator(_table_name)]


class Evidence(Record):
    """A file that caused a failure, with its ETag."""

    path: str
    etag: str


class ReplicatorFailure(Record):
    """Why a table has stopped: until its evidence changes or, without evidence, until the next poll."""

    code: str
    message: str
    evidence: tuple[Evidence, ...] = ()


class TableRecord(Record):
    """`_status/<name>.json`: the state of one table, for the folder with this identity."""

    format: Literal[1] = 1
    name: Name
    identity: str
    state: TableState = TableState.INITIALIZED
    failure: ReplicatorFailure | None = None
    note: str | None = None
    key_columns: tuple[str, ...] | None = None
    applied_number: Count = 0
    waiting_files: Count = 0
    processed_rows: Count = 0
    processed_bytes: Count = 0
    last_sync: AwareDatetime | None = None
    mirror_rows: Count = 0

    def status(self, *, folder_present: bool, mirror_path: Path) -> TableStatus:
        """Return the status of the table, from this record and its folders."""
        return TableStatus(
            name=TableName.parse(self.name),
            state=self.state,
            error_code=self.failure.code if self.failure else None,
            message=self.failure.message if self.failure else self.note,
            processed_rows=self.processed_rows,
            processed_bytes=self.processed_bytes,
            last_sync=self.last_sync,
            applied_number=self.applied_number,
            waiting_files=self.waiting_files,
            folder_present=folder_present,
            mirror_path=mirror_path,
            mirror_rows=self.mirror_rows,
        )


def read_record(path: Path) -> TableRecord | None:
    """Read the record, or None if it doesn't exist. Raises MirrorUnreadable for an invalid file."""
    try:
        return TableRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except pydantic.ValidationError as error:
        raise MIRROR_UNREADABLE(path=str(path), why=first_problem(error)) from None


def write_json(path: Path, record: pydantic.BaseModel) -> None:
    """Replace the file atomically: a reader sees the old record or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    twin = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with twin.open("xb") as file:
            file.write(record.model_dump_json(indent=1).encode())
            file.flush()
            os.fsync(file.fileno())
        twin.replace(path)
    finally:
        twin.unlink(missing_ok=True)
