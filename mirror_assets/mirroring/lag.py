"""How far a table's landing folder is behind its source."""

from __future__ import annotations

from mirror_assets.mirroring.uncovered import Uncovered
from mirror_assets.verify.timeliness import Lag


def table_lag(uncovered: Uncovered, now: float) -> Lag:
    """The lag at `now` (seconds since 1970): the age of the first uncovered commit, by the clock that Delta goes by.

    One commit is read at most. A mirror that begins without a snapshot is as far as the version before its start.
    """
    tip, covered, times = uncovered.tip.version, uncovered.next - 1, uncovered.times
    if not uncovered.waits:
        return Lag(tip, covered, 0.0)
    oldest = max(uncovered.next, times.first)
    return Lag(tip, covered, max(0.0, now - times.at(oldest) / 1000))
