"""The newest commits of a table, and what each adds to its size."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mirror_assets.source.actions import LiveFile, Tombstone
from mirror_assets.source.errors import LogGap
from mirror_assets.source.table_log import LoggedCommit, TableLog, files_by_path


@dataclass(frozen=True)
class Step:
    """What one commit adds to a table's size, less what it removes; `rows` are those shown, None when not known."""

    timestamp_ms: int
    files: int
    rows: int | None
    bytes: int | None


@dataclass(frozen=True)
class Window:
    """What was committed behind `begin_ms` and until `end_ms` (ms since 1970), oldest first."""

    begin_ms: int
    end_ms: int
    steps: tuple[Step, ...]


def recent_window(log: TableLog, since_ms: int, now_ms: int) -> Window:
    """The commits from `since_ms` until now; of a log, or a table, that begins later, those behind its first one."""
    versions = log.versions()
    index = bisect_left(versions, since_ms, key=log.time_ms)
    first = versions[index] if index < len(versions) else log.newest() + 1
    commits = _unbroken(log, first)
    if index > 0 and (not commits or commits[0].version == first):
        return Window(since_ms, now_ms, _steps(log, commits))
    return Window(commits[0].timestamp_ms if commits else since_ms, now_ms, _steps(log, commits[1:]))


def _unbroken(log: TableLog, first: int) -> tuple[LoggedCommit, ...]:
    """The commits from the first, or from behind the last one that is missing."""
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
    removed = [(_rows(tomb, known), _bytes(tomb, known)) for tomb in commit.removed]
    rows_out, bytes_out = _sum(rows for rows, _ in removed), _sum(size for _, size in removed)
    rows_in = _sum(None if file.rows is None else file.rows - _hidden(file) for file in commit.added)
    return Step(
        timestamp_ms=commit.timestamp_ms,
        files=len(commit.added) - len(commit.removed),
        rows=None if rows_in is None or rows_out is None else rows_in - rows_out,
        bytes=None if bytes_out is None else sum(file.bytes for file in commit.added) - bytes_out,
    )


def _rows(tomb: Tombstone, known: Mapping[str, LiveFile]) -> int | None:
    """Rows that the file showed."""
    stored = known[tomb.path].rows if tomb.rows is None and tomb.path in known else tomb.rows
    return None if stored is None else stored - _hidden(tomb)


def _bytes(tomb: Tombstone, known: Mapping[str, LiveFile]) -> int | None:
    return known[tomb.path].bytes if tomb.bytes is None and tomb.path in known else tomb.bytes


def _hidden(file: LiveFile | Tombstone) -> int:
    return file.vector.rows if file.vector else 0


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
