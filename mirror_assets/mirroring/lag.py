"""How far a table's landing folder is behind its source."""

from __future__ import annotations

from mirror_assets.audit.lag import Lag
from mirror_assets.mirroring.uncovered import Uncovered
from mirror_assets.mirroring.work import TableWork


def table_lag(work: TableWork, uncovered: Uncovered, now: float) -> Lag:
    """The lag at `now` (seconds since 1970), from the age of the first uncovered commit; one commit is read at most."""
    tip, covered = uncovered.tip.version, uncovered.covered
    if not uncovered.waits:
        return Lag(tip, covered, 0.0)
    first = max(uncovered.next, uncovered.times.first)
    (oldest,) = work.log.commits(first, first)
    return Lag(tip, covered, max(0.0, now - oldest.timestamp_ms / 1000))
