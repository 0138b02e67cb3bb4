"""The rebuild record: step and epoch of a rebuild or drop, outside the table folder (docs/landing-folder.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.errors import LostRace, ManifestCorrupt, RebuildRunning, TableDropped
from mirror_assets.landing.format import Manifest, Record, SliceRecord, decode, encode
from mirror_assets.landing.names import AttemptFolder, HistoryRange, TableName
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import Create, DeleteTree, Replace, Steps, identity_of, list_folder, read
from mirror_assets.storage import Content, FileInfo, PathChanged, PathExists, PathMissing

_LONGEST_REASON = 1000


class RebuildStep(str, Enum):
    """The steps of a rebuild, in Microsoft's order (reference `landing-zone` §4.35), and below them those of a drop."""

    STAGING = "staging the snapshot"
    DROPPING = "dropping the table folder"
    LOADING = "loading the snapshot"
    RETURNING = "waiting for the table to come back"
    FINISHED = "finished"

    REMOVING = "dropping the table for good"
    DROPPED = "dropped for good"


class RebuildRecord(Record):
    """`_rebuild/<table>.json`: publishers refuse until it is finished; `rebuild` or `drop` continues from its step.

    It is kept when it is finished, so that epochs are counted on when a folder is lost. `epoch` is the one a rebuild
    starts; nothing lands in the `epoch` of a drop, which ends all before it. `reason` is why it was begun; None: a
    person wanted it.
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
    found = yield from read_record(table)
    return found[0] if found else None


def first_epoch(table: TableName) -> Steps[int]:
    """Return the epoch to start for a table without a manifest: a running rebuild's, or the next one."""
    record = yield from read_rebuild(table)
    if record is None:
        return 1
    return record.epoch if record.is_running else record.epoch + 1


def require_alive(table: TableName, epoch: int) -> Steps[None]:
    """Raise RebuildRunning, TableDropped or LostRace when the epoch has ended: its slices must not land."""
    record = yield from read_rebuild(table)
    if record is None or record.epoch <= epoch:
        return
    if record.is_drop:
        raise TableDropped(str(table), record.step.value)
    if record.is_running:
        raise RebuildRunning(str(table), record.step.value)
    current = yield from read_manifest(table)
    if current is None or current.manifest.epoch != epoch:  # else that rebuild was abandoned
        raise LostRace(str(table), "of an earlier epoch")


def begin_rebuild(table: TableName, reason: str | None = None) -> Steps[RebuildRecord]:
    """Return the running rebuild, or start a new one with the table's next epoch, for this reason.

    Raises RebuildRunning when another process starts one at the same time, TableDropped while a drop is running, and
    ManifestCorrupt for the record.
    """
    found = yield from read_record(table)
    if found is not None and found[0].step is RebuildStep.REMOVING:
        raise TableDropped(str(table), found[0].step.value)
    if found is not None and found[0].is_running:
        return found[0]
    return (yield from put_record(table, RebuildStep.STAGING, found, reason))


def advance_rebuild(table: TableName, record: RebuildRecord, step: RebuildStep) -> Steps[RebuildRecord]:
    """Advance the record to `step` and return it. Raises RebuildRunning when another process has changed it."""
    return (yield from swap_record(table, record, record.model_copy(update={"step": step})))


def drop_again(table: TableName, record: RebuildRecord) -> Steps[RebuildRecord]:
    """Restart the rebuild with the next epoch, when what it loaded can't be repaired. Raises RebuildRunning."""
    again = record.model_copy(update={"step": RebuildStep.STAGING, "epoch": record.epoch + 1})
    return (yield from swap_record(table, record, again))


def drop_table_folder(table: TableName, record: RebuildRecord) -> Steps[None]:
    """Delete the staged slices of ended epochs, then the table folder, so that nothing of them can land.

    Raises RebuildRunning when another process has changed the record.
    """
    staged = yield from list_folder(table.scratch)
    identity = yield from identity_of(table.folder)
    # Listed before the record is read: while the record is unchanged, only staged snapshots can be of the new epoch,
    # and those are kept. So a slow process, or a late request, deletes nothing of the new epoch.
    yield from require_record(table, record)
    for info in staged:
        if not (yield from _may_be_snapshot(table, info, record)):
            yield DeleteTree(info.path)
    if identity is not None:
        yield DeleteTree(table.folder, identity)


def _may_be_snapshot(table: TableName, staged: FileInfo, record: RebuildRecord) -> Steps[bool]:
    """Whether the folder may hold a snapshot for the new epoch, or a chunk of one, finished or not, of any process.

    An unfinished one of a later generation can't land, as it has no record.
    """
    folder = AttemptFolder.parse(table, staged.name)
    if folder is None:
        return False
    content = yield from read(folder.record)
    if content is None:
        return folder.generation == 1
    try:
        return decode(SliceRecord, folder.record, content.data).epoch >= record.epoch
    except ManifestCorrupt:
        return False


def put_record(
    table: TableName, step: RebuildStep, found: tuple[RebuildRecord, Content] | None, reason: str | None = None
) -> Steps[RebuildRecord]:
    """Write a record with the next epoch, at this step, in place of `found`. Raises RebuildRunning."""
    epoch = yield from _last_epoch(table, found[0].epoch if found else 1)
    record = RebuildRecord(table=str(table), epoch=epoch + 1, step=step, reason=reason and reason[:_LONGEST_REASON])
    try:
        if found is None:
            yield Create(table.rebuild_record, encode(record))
        else:
            yield Replace(table.rebuild_record, encode(record), found[1].etag)
    except (PathExists, PathChanged, PathMissing):
        raise RebuildRunning(str(table), "begun by another") from None
    return record


def swap_record(table: TableName, record: RebuildRecord, moved: RebuildRecord) -> Steps[RebuildRecord]:
    """Replace the record by `moved`. Raises RebuildRunning when another process has changed it."""
    content = yield from require_record(table, record)
    try:
        yield Replace(table.rebuild_record, encode(moved), content.etag)
    except (PathChanged, PathMissing):
        raise RebuildRunning(str(table), "moved by another") from None
    return moved


def require_record(table: TableName, record: RebuildRecord) -> Steps[Content]:
    """Read the record again. Raises RebuildRunning when another process has changed it."""
    found = yield from read_record(table)
    if found is None or found[0] != record:
        raise RebuildRunning(str(table), found[0].step.value if found else "unknown")
    return found[1]


def read_record(table: TableName) -> Steps[tuple[RebuildRecord, Content] | None]:
    """Read the record with its bytes and ETag, or None. Raises ManifestCorrupt."""
    content = yield from read(table.rebuild_record)
    return (decode(RebuildRecord, table.rebuild_record, content.data), content) if content else None


def _last_epoch(table: TableName, known: int) -> Steps[int]:
    """Return the newest epoch in record, manifest or history. Ignores a manifest that can't be read: it is rebuilt."""
    kept = [HistoryRange.parse(info.name) for info in (yield from list_folder(table.history_folder))]
    try:
        current = yield from read_manifest(table)
    except ManifestCorrupt:
        current = None
    landed = current.manifest.epoch if current else 0
    return max(known, landed, *(one.epoch for one in kept if one))


@dataclass(frozen=True, order=True)
class Progress:
    """A table's epoch and newest landed generation, 0 before the first. It grows with each landed slice."""

    epoch: int
    generation: int


def progress_of(manifest: Manifest | None, rebuild: RebuildRecord | None) -> Progress:
    """Return the progress in the manifest; without one, generation 0 of the rebuild record's epoch."""
    if manifest is not None:
        return Progress(manifest.epoch, manifest.generation)
    return Progress(rebuild.epoch if rebuild else 0, 0)
