"""The rebuild record: the step and life of a rebuild or a drop, outside the folder (docs/landing-folder.md)."""

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


class RebuildStep(str, Enum):
    """How far a rebuild is; the order is Microsoft's (reference `landing-zone` §4.35). Below it, how far a drop is."""

    STAGING = "staging the snapshot"
    DROPPING = "dropping the table folder"
    LOADING = "loading the snapshot"
    RETURNING = "waiting for the table to come back"
    FINISHED = "finished"

    REMOVING = "dropping the table for good"
    DROPPED = "dropped for good"


class RebuildRecord(Record):
    """`_rebuild/<table>.json`: publishers refuse until it is finished; `rebuild` or `drop` continues from its step.

    It stays when it is finished: lives must not be counted anew when a folder is lost. A rebuild's life is the one that
    it begins; in a drop's nothing lands, and all before it have ended.
    """

    format: Literal[1] = 1
    table: str
    life: Annotated[int, Field(ge=1)]
    step: RebuildStep

    @property
    def is_running(self) -> bool:
        """Whether publishers have to wait."""
        return self.step not in (RebuildStep.FINISHED, RebuildStep.DROPPED)

    @property
    def is_loading(self) -> bool:
        """Whether the table folder is dropped, so that the rebuild's own snapshot may land."""
        return self.step in (RebuildStep.LOADING, RebuildStep.RETURNING)

    @property
    def is_drop(self) -> bool:
        """Whether the folder is dropped for good, and not for another life."""
        return self.step in (RebuildStep.REMOVING, RebuildStep.DROPPED)


def read_rebuild(table: TableName) -> Steps[RebuildRecord | None]:
    """The record of the table's newest rebuild, or None. Raises ManifestCorrupt."""
    found = yield from read_record(table)
    return found[0] if found else None


def first_life(table: TableName) -> Steps[int]:
    """The life that a table without a manifest begins: its rebuild's, or the one after that was finished and lost."""
    record = yield from read_rebuild(table)
    if record is None:
        return 1
    return record.life if record.is_running else record.life + 1


def require_alive(table: TableName, life: int) -> Steps[None]:
    """Raise RebuildRunning, TableDropped or LostRace if the life has ended: nothing of it may land or be cleared."""
    record = yield from read_rebuild(table)
    if record is None or record.life <= life:
        return
    if record.is_drop:
        raise TableDropped(str(table), record.step.value)
    if record.is_running:
        raise RebuildRunning(str(table), record.step.value)
    standing = yield from read_manifest(table)
    if standing is None or standing.manifest.life != life:  # else that rebuild was called off
        raise LostRace(str(table), "of an earlier life")


def begin_rebuild(table: TableName) -> Steps[RebuildRecord]:
    """The rebuild under way, or a new one that gives the table its next life.

    Raises RebuildRunning when another began one at this moment, TableDropped while the table is being dropped for good,
    and ManifestCorrupt for the record itself.
    """
    found = yield from read_record(table)
    if found is not None and found[0].step is RebuildStep.REMOVING:
        raise TableDropped(str(table), found[0].step.value)
    if found is not None and found[0].is_running:
        return found[0]
    return (yield from put_record(table, RebuildStep.STAGING, found))


def advance_rebuild(table: TableName, record: RebuildRecord, step: RebuildStep) -> Steps[RebuildRecord]:
    """The record moved on to `step`. Raises RebuildRunning when another rebuild has moved it meanwhile."""
    return (yield from swap_record(table, record, record.model_copy(update={"step": step})))


def drop_again(table: TableName, record: RebuildRecord) -> Steps[RebuildRecord]:
    """The record back at its first step, one life on, where what was loaded is beyond repair. Raises as above."""
    again = record.model_copy(update={"step": RebuildStep.STAGING, "life": record.life + 1})
    return (yield from swap_record(table, record, again))


def drop_table_folder(table: TableName, record: RebuildRecord) -> Steps[None]:
    """Delete what is staged of ended lives, then the table folder, so that nothing of them can land any more.

    Raises RebuildRunning when the record is another one by now.
    """
    staged = yield from list_folder(table.scratch)
    identity = yield from identity_of(table.folder)
    # Looked at before the record: while that is ours, nothing is a new life's but its snapshots. So whoever is slow, or
    # whose requests arrive late, deletes nothing that lives.
    yield from require_record(table, record)
    for info in staged:
        if not (yield from _may_be_snapshot(table, info, record)):
            yield DeleteTree(info.path)
    if identity is not None:
        yield DeleteTree(table.folder, identity)


def _may_be_snapshot(table: TableName, staged: FileInfo, record: RebuildRecord) -> Steps[bool]:
    """Whether it may be a snapshot for the life that begins, ours or another's, or a chunk of one; maybe unfinished.

    What was never finished was never committed either, so it can't land.
    """
    folder = AttemptFolder.parse(table, staged.name)
    if folder is None:
        return False
    content = yield from read(folder.record)
    if content is None:
        return folder.generation == 1
    try:
        return decode(SliceRecord, folder.record, content.data).life >= record.life
    except ManifestCorrupt:
        return False


def put_record(
    table: TableName, step: RebuildStep, found: tuple[RebuildRecord, Content] | None
) -> Steps[RebuildRecord]:
    """A record of the life after the last, at this step, in the place of `found`. Raises RebuildRunning."""
    life = yield from _last_life(table, found[0].life if found else 1)
    record = RebuildRecord(table=str(table), life=life + 1, step=step)
    try:
        if found is None:
            yield Create(table.rebuild_record, encode(record))
        else:
            yield Replace(table.rebuild_record, encode(record), found[1].etag)
    except (PathExists, PathChanged, PathMissing):
        raise RebuildRunning(str(table), "begun by another") from None
    return record


def swap_record(table: TableName, record: RebuildRecord, moved: RebuildRecord) -> Steps[RebuildRecord]:
    """`moved` in the place of the record. Raises RebuildRunning when that is not the one that is there."""
    content = yield from require_record(table, record)
    try:
        yield Replace(table.rebuild_record, encode(moved), content.etag)
    except (PathChanged, PathMissing):
        raise RebuildRunning(str(table), "moved by another") from None
    return moved


def require_record(table: TableName, record: RebuildRecord) -> Steps[Content]:
    """The record as it was read, if it is this one. Raises RebuildRunning when another has moved it meanwhile."""
    found = yield from read_record(table)
    if found is None or found[0] != record:
        raise RebuildRunning(str(table), found[0].step.value if found else "unknown")
    return found[1]


def read_record(table: TableName) -> Steps[tuple[RebuildRecord, Content] | None]:
    """The record with the bytes and ETag it was read from, or None. Raises ManifestCorrupt."""
    content = yield from read(table.rebuild_record)
    return (decode(RebuildRecord, table.rebuild_record, content.data), content) if content else None


def _last_life(table: TableName, known: int) -> Steps[int]:
    """The newest life that anything tells of; a manifest that can't be read is a reason to rebuild, not to refuse."""
    kept = [HistoryRange.parse(info.name) for info in (yield from list_folder(table.history_folder))]
    try:
        standing = yield from read_manifest(table)
    except ManifestCorrupt:
        standing = None
    landed = standing.manifest.life if standing else 0
    return max(known, landed, *(one.life for one in kept if one))


@dataclass(frozen=True, order=True)
class Position:
    """A table's life, and the generation that landed last in it; 0 before the first. It grows with whatever lands."""

    life: int
    generation: int

    def __str__(self) -> str:
        """`life-generation`."""
        return f"{self.life}-{self.generation}"


def position_of(manifest: Manifest | None, rebuild: RebuildRecord | None) -> Position:
    """The table's position by its manifest; without one, that of the newest life that began or ended without it."""
    if manifest is not None:
        return Position(manifest.life, manifest.generation)
    return Position(rebuild.life if rebuild else 0, 0)
