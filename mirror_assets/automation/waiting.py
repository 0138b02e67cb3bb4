"""What a rebuild or a drop waits for: that the mirror has dropped its table, and that it has it again."""

from __future__ import annotations

from mirror_assets.fabric.monitoring import Mirror, TableState
from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.errors import MirrorFailed
from mirror_assets.mirroring.rebuild import MirrorWait


def mirror_wait(mirror: Mirror, table: TableName) -> MirrorWait:
    """The wait for a table to be dropped from the mirror, and to come back. The latter raises MirrorFailed."""

    def dropped() -> bool:
        return mirror.look(table) is None

    def returned() -> bool:
        status = mirror.look(table)
        if status is not None and status.state is TableState.FAILED:
            raise MirrorFailed(str(table), status.message or "no reason given")
        return status is not None and status.state is TableState.REPLICATING

    return MirrorWait(dropped, returned, mirror.pace.pause_seconds, mirror.pace.limit_seconds)
