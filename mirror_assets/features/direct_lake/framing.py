"""The rows that Direct Lake keeps and loads at another version (reference §3.2), and growth, by the log alone."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import add, sub

import numpy as np
import numpy.typing as npt

from mirror_assets.source.actions import LiveFile
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import LoggedCommit, Snapshot

_DAY_MS = 86_400_000
# In a shorter time, a burst of commits would look like a trend.
_SHORTEST_MS = 3_600_000
_SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


def recent_commits(log: DeltaLog, since_ms: int) -> tuple[Snapshot, Iterator[LoggedCommit]]:
    """Return the version that was the newest at `since_ms` (since 1970), and the commits after it.

    If commits are missing, or the log begins later, it is the first version after the last gap.
    """
    available, logged, begin = set(log.versions()), set(log.logged_versions()), log.newest()
    while begin in logged and begin - 1 in available:
        begin -= 1
    newest_then = committed_by(log, since_ms)
    first = begin if newest_then is None else max(newest_then, begin)
    return log.snapshot(first), log.logged_commits(first + 1, log.newest())


def committed_by(log: DeltaLog, time_ms: int) -> int | None:
    """Return the last version committed at or before a time (ms since 1970), by Delta's rule.

    The version need not be reconstructable. None if the log can't answer: it begins later, or lacks the next commit,
    which may be older than the time.
    """
    known = sorted({*log.versions(), *log.logged_versions()})
    candidates, metadata = known, log.snapshot().metadata
    if metadata.in_commit_since:
        # In-commit timestamps may begin before the file times of older commits, so only one of the clocks counts.
        newer = time_ms >= int(metadata.configuration[_SINCE_TIME])
        candidates = [version for version in known if (version >= metadata.in_commit_since) is newer]
    found = candidates[: bisect_right(candidates, time_ms, key=log.time_ms)][-1:]
    is_certain = found and (found[0] + 1 in known or found[0] == known[-1] or log.time_ms(found[0]) == time_ms)
    return found[0] if is_certain else None


@dataclass(frozen=True)
class FileSum:
    """The sum of some files. `known_rows` are the visible rows of files with statistics; `without_rows` have none."""

    files: int = 0
    known_rows: int = 0
    without_rows: int = 0
    bytes: int = 0

    @property
    def rows(self) -> int | None:
        """Visible rows; None if a file has no statistics."""
        return None if self.without_rows else self.known_rows

    def __add__(self, other: FileSum) -> FileSum:
        return FileSum(*map(add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: FileSum) -> FileSum:
        return FileSum(*map(sub, vars(self).values(), vars(other).values()))


def sum_of(file: LiveFile) -> FileSum:
    """Count one file."""
    if file.rows is None:
        return FileSum(1, without_rows=1, bytes=file.bytes)
    return FileSum(1, file.rows - file.hidden_rows, bytes=file.bytes)


@dataclass(frozen=True)
class FramingEffect:
    """The files that a model framed at version `first` keeps and loads when it is framed at `last`.

    `kept` files are the same in both, deletion vector included. `changed` ones have another vector: it isn't
    documented what Direct Lake does with the loaded part of them (reference `direct-lake` §4). `reloaded` ones are new.
    All three are counted as of `last`, `dropped` ones as of `first`. `vector_bytes` are the deletion vectors to read.
    """

    first: int
    last: int
    kept: FileSum = FileSum()
    changed: FileSum = FileSum()
    reloaded: FileSum = FileSum()
    dropped: FileSum = FileSum()
    vector_bytes: int = 0

    @property
    def total(self) -> FileSum:
        """All files of `last`."""
        return self.kept + self.changed + self.reloaded

    @property
    def bytes_to_load(self) -> int:
        """Bytes of new files and vectors; a model that doesn't use all columns loads less."""
        return self.reloaded.bytes + self.vector_bytes

    @property
    def reloaded_share(self) -> float | None:
        """Share of rows in new files; None if the rows are unknown, or there are none."""
        rows = self.total.rows
        return self.reloaded.rows / rows if rows and self.reloaded.rows is not None else None


def framing_effect(first: Snapshot, last: Snapshot) -> FramingEffect:
    """Compare two versions; either may be the newer one."""
    before = {file.path: file for file in first.files}
    kept = changed = reloaded = FileSum()
    vector_bytes = 0
    for file in last.files:
        old = before.pop(file.path, None)
        if old is not None and old.vector == file.vector:
            kept += sum_of(file)
            continue
        vector_bytes += 0 if file.vector is None else file.vector.bytes
        if old is None:
            reloaded += sum_of(file)
        else:
            changed += sum_of(file)
    dropped = sum(map(sum_of, before.values()), FileSum())
    return FramingEffect(first.version, last.version, kept, changed, reloaded, dropped, vector_bytes)


def table_sizes(start: Snapshot, commits: Iterable[LoggedCommit]) -> Iterator[FileSum]:
    """Yield the sum of the table's files at the start and after each of the commits."""
    live = {file.path: file for file in start.files}
    total = sum(map(sum_of, start.files), FileSum())
    yield total
    for commit in commits:
        removed, added = commit.actions.removed, commit.actions.added
        # A new deletion vector is a removal and an addition.
        for path in [file.path for file in removed] + [file.path for file in added]:
            if (before := live.pop(path, None)) is not None:
                total -= sum_of(before)
        for file in added:
            live[file.path] = file
            total += sum_of(file)
        yield total


@dataclass(frozen=True)
class Growth:
    """A table's growth per day: the slope of the line nearest to its size over the last `days` (least squares).

    `rows` are visible ones; None if the log doesn't have the rows of all files that came or went.
    """

    files: float
    rows: float | None
    bytes: float
    days: float
    commits: int


def growth(log: DeltaLog, since_ms: int, now_ms: int) -> Growth | None:
    """Return the growth from `since_ms`, or the last gap in the log, until now; None for less than an hour."""
    start, commits = recent_commits(log, since_ms)
    moments, measured = array("q", [start.timestamp_ms]), array("q")

    def timed() -> Iterator[LoggedCommit]:
        for commit in commits:
            moments.append(commit.timestamp_ms)
            yield commit

    for size in table_sizes(start, timed()):
        measured.extend((size.files, size.known_rows, size.without_rows, size.bytes))
    times, sizes = np.array(moments, np.int64), np.array(measured, np.int64).reshape(-1, 4)
    if len(times) > 1 and times[0] > times[1]:  # only the checkpoint of the start is left, which is younger
        times, sizes = times[1:], sizes[1:]
    times[0] = max(since_ms, times[0])
    if now_ms - times[0] < _SHORTEST_MS:
        return None
    days = (np.append(times, now_ms) - times[0]) / _DAY_MS

    def slope(amounts: npt.NDArray[np.int64]) -> float:
        off = days - days.mean()
        return float(off @ (np.append(amounts, amounts[-1]) - amounts[-1]) / (off @ off))

    return Growth(
        files=slope(sizes[:, 0]),
        rows=slope(sizes[:, 1]) if len(np.unique(sizes[:, 2])) == 1 else None,
        bytes=slope(sizes[:, 3]),
        days=float(days[-1]),
        commits=len(times) - 1,
    )
