"""How fast a table grows, by the commits of a window of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import linear_regression

from mirror_assets.direct_lake.guardrails.window import Window

_DAY_MS = 86_400_000
# In less, a burst of commits would pass for a trend.
_SHORTEST_MS = 3_600_000


@dataclass(frozen=True)
class Growth:
    """What a table gains per day: the slope of the straight line nearest to its size over the window (least squares).

    Compactions make the number of files fall now and then; the line goes through that. `rows` are those that the table
    shows; they, and `bytes`, are None when the log doesn't say how many a commit removed. `days` is how long the window
    is.
    """

    files: float
    rows: float | None
    bytes: float | None
    days: float
    commits: int


def growth(window: Window) -> Growth | None:
    """The growth over the window; None when that is shorter than an hour."""
    if window.end_ms - window.begin_ms < _SHORTEST_MS:
        return None
    return Growth(
        files=_slope(window, [step.files for step in window.steps]),
        rows=_slope_if_known(window, [step.rows for step in window.steps]),
        bytes=_slope_if_known(window, [step.bytes for step in window.steps]),
        days=(window.end_ms - window.begin_ms) / _DAY_MS,
        commits=len(window.steps),
    )


def _slope_if_known(window: Window, changes: Sequence[int | None]) -> float | None:
    known = [change for change in changes if change is not None]
    return _slope(window, known) if len(known) == len(changes) else None


def _slope(window: Window, changes: Sequence[int]) -> float:
    """Per day; the size at the window's beginning counts as 0, for the line's height is of no interest."""
    sizes = [*accumulate(changes, initial=0), sum(changes)]
    times = [window.begin_ms, *(step.timestamp_ms for step in window.steps), window.end_ms]
    return linear_regression([(at - window.begin_ms) / _DAY_MS for at in times], sizes).slope
