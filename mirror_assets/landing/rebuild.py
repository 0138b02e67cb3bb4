"""The rebuild record: step and epoch of a rebuild or drop, outside the table folder (docs/landing-folder.md).

A drop deletes a table's staged slices and its folder, after which Fabric drops the mirrored table. The record is
written before anything is deleted and kept afterwards. So publishers refuse, an interrupted drop can continue, and a
later start of the table has another epoch.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.errors import LOST_RACE, REBUILD_RUNNING, TABLE_DROPPED, ManifestCorrupt
from mirror_assets.landing.format import Record, SliceRecord
from mirror_assets.landing.generations import list_history
from mirror_assets.landing.names import AttemptFolder, TableName
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import (
    ControlFile,
    DeleteTree,
    FolderIdentity,
    ListFolder,
    Steps,
    read_control_file,
    write_control_file,
)
from mirror_assets.zones import FileInfo

_LONGEST_REASON = 1000


class RebuildStep(str, Enum):
    """The steps of a rebuild, in Microsoft's order (reference `landing-zone` §4.35), then those of a drop."""

    STAGING = "staging the snapshot"
    DROPPING = "dropping the table folder"
    LOADING = "loading the snapshot"
    RETURNING = "waiting for the table to come back"
    FINISHED = "finished"

    REMOVING = "dropping the table for good"
    DROPPED = "dropped for good"


class RebuildRecord(Record):
    """`_rebuild/<table>.json`: publishers refuse until it is finished; `rebuild` or `drop` continues from its step.

    A finished record remains, so that epochs are counted even if a folder is lost. `epoch` is the one that a rebuild
    starts; nothing lands in the `epoch` of a drop, which ends all earlier ones. `reason` is None if a person requested
    it.
    """

    format: Literal[1] = 1
    table: str
    epoch: Annotated[int, Field(ge=1)]
    step: RebuildStep
    reason: str | None = None

    @property
    def is_running(self) -> bool:
        """Whether publishers must wait."""
        return self.step not in (RebuildStep.FINISHED, RebuildStep.DROPPED)

    @property
    def is_loading(self) -> bool:
        """Whether the table folder has been dropped, so that the rebuild's snapshot may land."""
        return self.step in (RebuildStep.LOADING, RebuildStep.RETURNING)

    @property
    def is_drop(self) -> bool:
        """Whether the record is of a drop, not of a rebuild."""
        return self.step in (RebuildStep.REMOVING, RebuildStep.DROPPED)


def read_rebuild(table: TableName) -> Steps[RebuildRecord | None]:
    """Read the record of the table's newest rebuild or drop, or None. Raises ManifestCorrupt."""
    return (yield from read_record(table)).record


def first_epoch(table: TableName) -> Steps[int]:
    """Return the epoch to start for a table without a manifest: a running rebuild's, or the next one."""
    record = yield from read_rebuild(table)
    if record is None:
        return 1
    return record.epoch if record.is_running else record.epoch + 1


def require_alive(table: TableName, epoch: int) -> Steps[None]:
    """Raise REBUILD_RUNNING, TABLE_DROPPED or LostRace if the epoch has ended: its slices must not land."""
    record = yield from read_rebuild(table)
    if record is None or record.epoch <= epoch:
        return
    if record.is_drop:
        raise TABLE_DROPPED(table=str(table), step=record.step.value)
    if record.is_running:
        raise REBUILD_RUNNING(table=str(table), step=record.step.value)
    current = yield from read_manifest(table)
    if current is None or current.manifest.epoch != epoch:  # else that rebuild was abandoned
        raise LOST_RACE(table=str(table), key="of an earlier epoch")


def begin_rebuild(table: TableName, reason: str | None = None) -> Steps[RebuildRecord]:
    """Return the running rebuild, or start a new one with the table's next epoch, for this reason.

    Raises REBUILD_RUNNING if another process starts one at the same time, TABLE_DROPPED while a drop is running, and
    ManifestCorrupt for the record.
    """
    found = yield from read_record(table)
    record = found.record
    if record is not None and record.step is RebuildStep.REMOVING:
        raise TABLE_DROPPED(table=str(table), step=record.step.value)
    if record is not None and record.is_running:
        return record
    return (yield from put_record(table, RebuildStep.STAGING, found, reason))


def advance_rebuild(table: TableName, record: RebuildRecord, step: RebuildStep) -> Steps[RebuildRecord]:
    """Advance the record of a rebuild or drop to `step` and return it.

    STAGING restarts a rebuild with the next epoch, if the loaded one can't be repaired. Raises REBUILD_RUNNING if
    another process has changed the record.
    """
    epoch = record.epoch + 1 if step is RebuildStep.STAGING else record.epoch
    moved = record.model_copy(update={"step": step, "epoch": epoch})
    found = yield from require_record(table, record)
    if not (yield from write_control_file(found, moved)):
        raise REBUILD_RUNNING(table=str(table), step="continued by another process")
    return moved


def drop_table_folder(table: TableName, record: RebuildRecord) -> Steps[None]:
    """Delete the staged slices of ended epochs, then the table folder, so that nothing of them can land.

    Raises REBUILD_RUNNING if another process has changed the record.
    """
    staged = yield from ListFolder(table.scratch)
    identity = yield from FolderIdentity(table.folder)
    # Listed before the record is read: while the record is unchanged, only staged snapshots can be of the new epoch,
    # and those are kept. So a slow process, or a late request, deletes nothing of the new epoch.
    yield from require_record(table, record)
    for info in staged:
        if not (yield from _may_be_snapshot(table, info, record)):
            yield from DeleteTree(info.path)
    if identity is not None:
        yield from DeleteTree(table.folder, identity)


def _may_be_snapshot(table: TableName, staged: FileInfo, record: RebuildRecord) -> Steps[bool]:
    """Whether the folder may have a snapshot of the new epoch, or a chunk of one, which any process may still write.

    Without a slice record, only the first generation counts.
    """
    folder = AttemptFolder.parse(table, staged.name)
    if folder is None:
        return False
    staged_slice = yield from read_control_file(SliceRecord, folder.record, is_hint=True)
    if staged_slice.content is None:
        return folder.generation == 1
    return staged_slice.record is not None and staged_slice.record.epoch >= record.epoch


def put_record(
    table: TableName, step: RebuildStep, found: ControlFile[RebuildRecord], reason: str | None = None
) -> Steps[RebuildRecord]:
    """Write a record with the next epoch, at this step, in place of `found`. Raises REBUILD_RUNNING."""
    epoch = yield from _last_epoch(table, found.record.epoch if found.record else 1)
    record = RebuildRecord(table=str(table), epoch=epoch + 1, step=step, reason=reason and reason[:_LONGEST_REASON])
    if not (yield from write_control_file(found, record)):
        raise REBUILD_RUNNING(table=str(table), step="started by another process")
    return record


def require_record(table: TableName, record: RebuildRecord) -> Steps[ControlFile[RebuildRecord]]:
    """Read the record again. Raises REBUILD_RUNNING if another process has changed it."""
    found = yield from read_record(table)
    if found.record != record:
        raise REBUILD_RUNNING(table=str(table), step=found.record.step.value if found.record else "unknown")
    return found


def read_record(table: TableName) -> Steps[ControlFile[RebuildRecord]]:
    """Read the record with its ETag. Raises ManifestCorrupt."""
    return (yield from read_control_file(RebuildRecord, table.rebuild_record))


def _last_epoch(table: TableName, known: int) -> Steps[int]:
    """Return the newest epoch in record, manifest or history. Ignores an unreadable manifest: it is rebuilt."""
    kept = yield from list_history(table)
    try:
        current = yield from read_manifest(table)
    except ManifestCorrupt:
        current = None
    landed = current.manifest.epoch if current else 0
    return max(known, landed, *(one.epoch for one in kept))


def begin_drop(table: TableName) -> Steps[RebuildRecord]:
    """Return the running drop, or start one. A running rebuild then fails at its next step.

    Raises REBUILD_RUNNING if another process changes the record at the same time, and ManifestCorrupt for the record.
    """
    found = yield from read_record(table)
    if found.record is not None and found.record.step is RebuildStep.REMOVING:
        return found.record
    return (yield from put_record(table, RebuildStep.REMOVING, found))


def remove_table(table: TableName, record: RebuildRecord) -> Steps[None]:
    """Delete the staged slices, then the table folder: in the other order, a publisher could still land a staged slice.

    Repeats if a late publisher creates the folder again. Raises REBUILD_RUNNING if another process has changed the
    record.
    """
    for info in (yield from ListFolder(table.scratch)):
        yield from DeleteTree(info.path)
    # The identity is read before the record: while the record is unchanged, no folder belongs to a new epoch.
    while (identity := (yield from FolderIdentity(table.folder))) is not None:
        yield from require_record(table, record)
        yield from DeleteTree(table.folder, identity)


def is_dropped(table: TableName) -> Steps[bool]:
    """Whether nothing is left to drop: no running drop, no table folder, and no staged slice."""
    record = yield from read_rebuild(table)
    if record is not None and record.step is RebuildStep.REMOVING:
        return False
    left = (yield from ListFolder(table.folder)) or (yield from ListFolder(table.scratch))
    return not left
