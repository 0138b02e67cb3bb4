"""Drops a table: deletes its staged slices and its folder, after which Fabric drops the mirrored table.

The rebuild record is written before anything is deleted and kept afterwards. So publishers refuse, an interrupted drop
can continue, and a later start of the table has another epoch.
"""

from __future__ import annotations

from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import (
    RebuildRecord,
    RebuildStep,
    advance_rebuild,
    put_record,
    read_rebuild,
    read_record,
    require_record,
)
from mirror_assets.landing.steps import DeleteTree, FolderIdentity, ListFolder, Steps


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


def end_drop(table: TableName, record: RebuildRecord) -> Steps[RebuildRecord]:
    """Finish the drop. The record remains, to count epochs. Raises REBUILD_RUNNING."""
    return (yield from advance_rebuild(table, record, RebuildStep.DROPPED))


def is_dropped(table: TableName) -> Steps[bool]:
    """Whether nothing is left to drop: no running drop, no table folder, and no staged slice."""
    record = yield from read_rebuild(table)
    if record is not None and record.step is RebuildStep.REMOVING:
        return False
    left = (yield from ListFolder(table.folder)) or (yield from ListFolder(table.scratch))
    return not left
