"""The failure record: how often a table's runs have failed since the last success (docs/landing-folder.md).

It is bound to the position at which they failed, and is void as soon as anything lands. The process that mirrors the
table deletes it when a complete plan has nothing to do. Every instance, job and command sees it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.errors import NEXT, ErrorCode
from mirror_assets.landing.control_file import read_control_file, write_control_file
from mirror_assets.landing.format import Manifest, Record, RecordedSlice
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.landing.rebuild import RebuildRecord, read_rebuild
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.zones import Store

_LONGEST_MESSAGE = 4000


class FailureRecord(Record):
    """`_failures/<table>.json`: the newest failure, and the number of failures since the last success.

    `epoch` and `generation` are the position at which it failed. `slice` and `rebuild` are the newest known values at
    this position: a later failure without them keeps them.
    """

    format: Literal[1] = 1
    table: str
    epoch: Annotated[int, Field(ge=0)]
    generation: Annotated[int, Field(ge=0)]
    count: Annotated[int, Field(ge=1)]
    failed_ms: int
    code: ErrorCode
    message: str
    slice: RecordedSlice | None = None
    rebuild: str | None = None

    @property
    def counted(self) -> str:
        """Return `1 run of shop.orders failed`."""
        return f"{self.count} run{'' if self.count == 1 else 's'} of {self.table} failed"

    @property
    def reason(self) -> str:
        """The first part of the message, without the table's name."""
        return self.message.removeprefix(f"{self.table}: ").partition(NEXT)[0]

    @property
    def next_step(self) -> str:
        """The next step in the message, or an empty text."""
        return self.message.partition(NEXT)[2]

    def stands(self, manifest: Manifest | None, rebuild: RebuildRecord | None) -> bool:
        """Whether the failure still counts: nothing has landed since, and the table was not dropped."""
        if manifest is not None and _position(manifest, rebuild) > (self.epoch, self.generation):
            return False
        return not (rebuild is not None and rebuild.is_drop and rebuild.epoch > self.epoch)


def read_failure(store: Store, table: TableName) -> FailureRecord | None:
    """Read the record, void or not; None if it is missing or unreadable."""
    return drive(read_control_file(FailureRecord, table.failure_record, is_hint=True), store).record


def record_failure(
    store: Store,
    table: TableName,
    code: ErrorCode,
    message: str,
    now_ms: int,
    key: SliceKey | None = None,
    rebuild_because: str | None = None,
) -> None:
    """Count a failed run at the table's current position. Of two at the same time, one may be lost.

    `key` is the slice that failed, `rebuild_because` the reason why only a rebuild helps; both None if unknown. Raises
    ManifestCorrupt, and what a store raises.
    """
    rebuild = drive(read_rebuild(table), store)
    current = drive(read_manifest(table), store)
    manifest = current.manifest if current else None
    found = drive(read_control_file(FailureRecord, table.failure_record, is_hint=True), store)
    before = found.record if found.record and found.record.stands(manifest, rebuild) else None
    epoch, generation = _position(manifest, rebuild)
    record = FailureRecord(
        table=str(table),
        epoch=epoch,
        generation=generation,
        count=before.count + 1 if before else 1,
        failed_ms=now_ms,
        code=code,
        message=message[:_LONGEST_MESSAGE],
        slice=key or (before.slice if before else None),
        rebuild=rebuild_because or (before.rebuild if before else None),
    )
    drive(write_control_file(found, record), store)  # if another run was faster, its failure is recorded


def _position(manifest: Manifest | None, rebuild: RebuildRecord | None) -> tuple[int, int]:
    """Return epoch and generation of the manifest; without one, generation 0 of the rebuild record's epoch."""
    if manifest is not None:
        return manifest.epoch, manifest.generation
    return (rebuild.epoch if rebuild else 0), 0


def clear_failure(store: Store, table: TableName) -> None:
    """Delete the record, if it exists. Raises what a store raises."""
    if store.head(table.failure_record) is not None:
        store.delete(table.failure_record)
