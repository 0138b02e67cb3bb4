"""Drops a table for good: its staged attempts and its folder, so that Fabric drops the table.

The rebuild record says so before anything is deleted, and still when all is. So publishers refuse, a killed drop can be
gone on with, and who begins the table again later begins another epoch.
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
    """The drop under way, or a new one. It takes over from a rebuild, which then fails at its next step.

    Raises RebuildRunning when another moved the record at this moment, and ManifestCorrupt for the record itself.
    """
    found = yield from read_record(table)
    if found is not None and found[0].step is RebuildStep.REMOVING:
        return found[0]
    return (yield from put_record(table, RebuildStep.REMOVING, found))


def remove_table(table: TableName, record: RebuildRecord) -> Steps[None]:
    """Delete what is staged, then the table folder; the other way round, a publisher could land what is staged still.

    A publisher that was on its way may put something back: that goes, too. Raises RebuildRunning when the record is
    another one by now.
    """
    for info in (yield from list_folder(table.scratch)):
        yield DeleteTree(info.path)
    # Looked at before the record: while that is ours, no folder is a new epoch's. So none is deleted, however late.
    while (identity := (yield from identity_of(table.folder))) is not None:
        yield from require_record(table, record)
        yield DeleteTree(table.folder, identity)


def end_drop(table: TableName, record: RebuildRecord) -> Steps[RebuildRecord]:
    """The record of a table that is gone; it stays, to count epochs. Raises RebuildRunning."""
    return (yield from advance_rebuild(table, record, RebuildStep.DROPPED))


def is_dropped(table: TableName) -> Steps[bool]:
    """Whether there is nothing to drop: the record says so, and nothing has come back."""
    found = yield from read_record(table)
    if found is not None and found[0].step is RebuildStep.REMOVING:
        return False
    left = (yield from list_folder(table.folder)) or (yield from list_folder(table.scratch))
    return not left
