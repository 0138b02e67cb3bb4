"""What a rebuild waits for, on the local stand-in: each question lets it do one iteration."""

from __future__ import annotations

from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.errors import MirrorFailed
from mirror_assets.mirroring.rebuild import MirrorWait
from mirror_assets.replicator import LocalReplicator, TableState, TableStatus
from mirror_assets.replicator.errors import MirrorBusy


def mirror_wait(replicator: LocalReplicator, table: TableName) -> MirrorWait:
    """The wait for a table to be dropped from the mirror, and to come back. The latter raises MirrorFailed."""

    def polled() -> TableStatus | None:
        try:
            replicator.poll()
        except MirrorBusy:
            pass  # another table's wait, or the replicate job, is at it: its poll is as good as ours
        return replicator.table(table)

    def returned() -> bool:
        status = polled()
        if status is not None and status.state is TableState.FAILED:
            raise MirrorFailed(str(table), status.message or "no reason given")
        return status is not None and status.applied_number > 0

    def dropped() -> bool:
        return polled() is None

    return MirrorWait(dropped, returned)
