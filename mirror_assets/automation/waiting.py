"""What a rebuild waits for, on the local stand-in: each question lets it do one iteration."""

from __future__ import annotations

from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.rebuild import MirrorWait
from mirror_assets.replicator import LocalReplicator


def mirror_wait(replicator: LocalReplicator, table: TableName) -> MirrorWait:
    """The wait for a table to be dropped from the mirror, and to come back."""

    def dropped() -> bool:
        replicator.poll()
        return replicator.table(table) is None

    def returned() -> bool:
        replicator.poll()
        status = replicator.table(table)
        return status is not None and status.applied_number > 0

    return MirrorWait(dropped, returned)
