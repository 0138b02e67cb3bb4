"""How fast a table grows, by the commits of a window of time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import linear_regression

from mirror_assets.delta.errors import LogGap
from mirror_assets.direct_lake.table.known import files_by_path
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.values import LiveFile, LoggedCommit, Tombstone

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


@dataclass(frozen=True)
class Step:
    """What one commit adds to a table's size, less what it removes; `rows` are those shown, None when not known."""

    timestamp_ms: int
    files: int
    rows: int | None
    bytes: int | None


@dataclass(frozen=True)
class Window:
    """What was committed after `begin_ms` and until `end_ms` (ms since 1970), oldest first."""

    begin_ms: int
    end_ms: int
    steps: tuple[Step, ...]


def growth(window: Window) -> Growth | None:
    """Return the growth over the window; None when that is shorter than an hour."""
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


def recent_window(log: TableLog, since_ms: int, now_ms: int) -> Window:
    """Read the commits from `since_ms` until now; those after the first one of a log, or a table, that begins later."""
    versions = log.versions()
    index = bisect_left(versions, since_ms, key=log.time_ms)
    first = versions[index] if index < len(versions) else log.newest() + 1
    commits = _unbroken(log, first)
    if index > 0 and (not commits or commits[0].version == first):
        return Window(since_ms, now_ms, _steps(log, commits))
    return Window(commits[0].timestamp_ms if commits else since_ms, now_ms, _steps(log, commits[1:]))


def _unbroken(log: TableLog, first: int) -> tuple[LoggedCommit, ...]:
    """The commits from the first, or from after the last one that is missing."""
    newest = log.newest()
    while first <= newest:
        try:
            return log.commits(first, newest)
        except LogGap as gap:
            first = gap.version + 1
    return ()


def _steps(log: TableLog, commits: Sequence[LoggedCommit]) -> tuple[Step, ...]:
    removed = [tomb for commit in commits for tomb in commit.removed if tomb.rows is None or tomb.bytes is None]
    known = files_by_path(log, commits, removed)
    return tuple(_step(commit, known) for commit in commits)


def _step(commit: LoggedCommit, known: Mapping[str, LiveFile]) -> Step:
    rows_in = _sum(_shown_rows(file, {}) for file in commit.added)
    rows_out = _sum(_shown_rows(tomb, known) for tomb in commit.removed)
    bytes_out = _sum(
        known[tomb.path].bytes if tomb.bytes is None and tomb.path in known else tomb.bytes for tomb in commit.removed
    )
    return Step(
        timestamp_ms=commit.timestamp_ms,
        files=len(commit.added) - len(commit.removed),
        rows=None if rows_in is None or rows_out is None else rows_in - rows_out,
        bytes=None if bytes_out is None else sum(file.bytes for file in commit.added) - bytes_out,
    )


def _shown_rows(file: LiveFile | Tombstone, known: Mapping[str, LiveFile]) -> int | None:
    """Rows that no deletion vector hides; a tombstone without statistics has those of its add action."""
    stored = known[file.path].rows if file.rows is None and file.path in known else file.rows
    return None if stored is None else stored - (file.vector.rows if file.vector else 0)


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum, or None when a part of it isn't known."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
