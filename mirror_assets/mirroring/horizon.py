"""How long the next commit to cover can still be read."""

from __future__ import annotations

from mirror_assets.audit.retention import Horizon, Then
from mirror_assets.config import OnBreak
from mirror_assets.delta.retention import retention_clocks
from mirror_assets.mirroring.uncovered import Uncovered
from mirror_assets.mirroring.work import TableWork


def feed_horizon(work: TableWork, uncovered: Uncovered, now: float) -> Horizon:
    """The horizon at `now` (seconds since 1970), from the log alone. Raises PropertyUnreadable.

    A table of which nothing has landed begins with a snapshot: it waits for no commit in particular.
    """
    waits, times = uncovered.waits and uncovered.manifest is not None, uncovered.times
    is_there = waits and uncovered.next >= times.first
    return Horizon(
        uri=work.table.source,
        version=uncovered.next if waits else uncovered.tip.version + 1,
        waits=waits,
        committed=times.at(uncovered.next) / 1000 if is_there else None,
        clocks=retention_clocks(work.table.source, uncovered.tip.metadata),
        now=now,
        then=Then.REBUILT if work.table.on_break is OnBreak.REBUILD else Then.HELD,
    )
