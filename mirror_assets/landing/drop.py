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
    read_record,
    require_record,
)
from mirror_assets.landing.steps import DeleteTree, Steps, identity_of, list_folder


def begin_drop(table: TableName) -> Steps[RebuildRecord]:
    """Return the running drop, or start one. A running rebuild then fails at its next step.

    Raises RebuildRunning when another process changes the record at the same time, and ManifestCorrupt for the record.
    """
    found = yield from read_record(table)
    if found is not None and found[0].step is RebuildStep.REMOVING:
        return found[0]
    return (yield from put_record(table, RebuildStep.REMOVING, found))


def remove_table(table: TableName, record: RebuildRecord) -> Steps[None]:
    """Delete the staged slices, then the table folder: in the other order, a publisher could still land a staged slice.

    Repeats for what a late publisher puts back. Raises RebuildRunning when another process has changed the record.
    """
    for info in (yield from list_folder(table.scratch)):
        yield DeleteTree(info.path)
    # Identified before the record is read: while the record is unchanged, no folder belongs to a new epoch.
    while (identity := (yield from identity_of(table.folder))) is not None:
        yield from require_record(table, record)
        yield DeleteTree(table.folder, identity)


def end_drop(table: TableName, record: RebuildRecord) -> Steps[RebuildRecord]:
    """Finish the drop. The record stays, to count epochs. Raises RebuildRunning."""
    return (yield from advance_rebuild(table, record, RebuildStep.DROPPED))


def is_dropped(table: TableName) -> Steps[bool]:
    """Whether there is nothing to drop: no drop is running, and no folder or staged slice is there."""
    found = yield from read_record(table)
    if found is not None and found[0].step is RebuildStep.REMOVING:
        return False
    left = (yield from list_folder(table.folder)) or (yield from list_folder(table.scratch))
    return not left
