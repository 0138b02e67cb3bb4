"""A stretch of a table's log: its commits, the maintenance among them, and how long each file stayed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum

from mirror_assets.source.actions import LiveFile, Vector
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.table_log import LoggedCommit, TableLog

_SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


class Maintenance(str, Enum):
    """Operations that change files and leave rows as they are, or bring an older version back."""

    OPTIMIZE = "OPTIMIZE"
    REORG = "REORG"
    VACUUM = "VACUUM"
    RESTORE = "RESTORE"


# Of a VACUUM's two commits the second says that it is done; Spark and delta-rs write the same words.
_OPERATIONS = {"VACUUM END": Maintenance.VACUUM} | {
    operation.value: operation for operation in Maintenance if operation is not Maintenance.VACUUM
}


@dataclass(frozen=True)
class Mark:
    """A maintenance operation's commit."""

    version: int
    timestamp_ms: int
    operation: Maintenance


@dataclass(frozen=True)
class History:
    """A table from one version on: that version as a whole, and the commits after it."""

    start: Snapshot
    commits: tuple[LoggedCommit, ...]

    @property
    def first(self) -> int:
        """The first version."""
        return self.start.version

    @property
    def last(self) -> int:
        """The last version."""
        return self.first + len(self.commits)

    def time_ms(self, version: int) -> int:
        """When the version, one of the history's, was committed."""
        return self.start.timestamp_ms if version == self.first else self._commit(version).timestamp_ms

    def marks(self, after: int, last: int) -> tuple[Mark, ...]:
        """Return the maintenance after version `after`, up to `last`."""
        commits = map(self._commit, range(after + 1, last + 1))
        return tuple(
            Mark(commit.version, commit.timestamp_ms, _OPERATIONS[commit.operation])
            for commit in commits
            if commit.operation in _OPERATIONS
        )

    def every_version(self) -> tuple[int, ...]:
        """Return all versions, ascending."""
        return tuple(range(self.first, self.last + 1))

    def daily_versions(self) -> tuple[int, ...]:
        """Return the first version, and the last of each day (UTC) on which there was a commit."""
        days = {
            datetime.fromtimestamp(self.time_ms(version) / 1000, timezone.utc).date(): version
            for version in self.every_version()
        }
        return tuple(sorted({self.first, *days.values()}))

    def _commit(self, version: int) -> LoggedCommit:
        return self.commits[version - self.first - 1]


def read_history(log: TableLog, first: int | None = None, last: int | None = None) -> History:
    """Read the versions from `first` (default: the oldest with no commit missing after it) to `last` (the newest).

    Raises LogGap for a version that is gone.
    """
    end = log.newest() if last is None else last
    begin = _unbroken(log, end) if first is None else first
    return History(log.snapshot(begin), log.commits(begin + 1, end))


def recent_history(log: TableLog, since_ms: int) -> History:
    """Read from the version that was the newest at `since_ms` (since 1970), or as far back as no commit is missing."""
    newest_then, unbroken = committed_by(log, since_ms), _unbroken(log, log.newest())
    return read_history(log, unbroken if newest_then is None else max(newest_then, unbroken))


def _unbroken(log: TableLog, end: int) -> int:
    """The first version after which each commit up to the end is there."""
    there, logged, begin = set(log.versions()), set(log.logged()), end
    while begin in logged and begin - 1 in there:
        begin -= 1
    return begin


def committed_by(log: TableLog, time_ms: int) -> int | None:
    """Return the last version committed at or before a time (ms since 1970), by Delta's rule.

    The version need not be reconstructable. None when the log doesn't tell: it begins later, or lacks the next commit,
    which may have been made by then.
    """
    known = sorted({*log.versions(), *log.logged()})
    candidates = _ascending_in_time(log, known, time_ms)
    found = candidates[: bisect_right(candidates, time_ms, key=log.time_ms)][-1:]
    is_certain = found and (found[0] + 1 in known or found[0] == known[-1] or log.time_ms(found[0]) == time_ms)
    return found[0] if is_certain else None


def _ascending_in_time(log: TableLog, versions: Sequence[int], time_ms: int) -> Sequence[int]:
    """The versions with the clock that counts: in-commit timestamps may begin before times of older commits' files."""
    metadata = log.snapshot().metadata
    began = metadata.in_commit_since
    if not began:
        return versions
    newer = time_ms >= int(metadata.configuration[_SINCE_TIME])
    return [version for version in versions if (version >= began) is newer]


@dataclass(frozen=True)
class FileLifetime:
    """One file's stay in the table: from a version on, up to the one that removed it.

    `added` is None for a file that was there before the history begins, `removed` for one that is still there.
    `changes` are the versions that gave it another deletion vector. A file that RESTORE brings back has a second
    lifetime.
    """

    path: str
    bytes: int
    added: int | None
    removed: int | None = None
    changes: tuple[int, ...] = ()


def file_lifetimes(history: History) -> tuple[FileLifetime, ...]:
    """Return every file that was in the table at any time of the history, in the order in which they came.

    The history's first version only tells when its files came if it is the table's first, too.
    """
    files = _Files()
    for file in history.start.files:
        files.begin(file, 0 if history.first == 0 else None)
    for commit in history.commits:
        files.apply(commit)
    lifetimes = [*files.ended, *(life for life, _ in files.here.values())]
    return tuple(sorted(lifetimes, key=_order))


class _Files:
    """Files that are there, each with its present deletion vector, and lifetimes that have ended."""

    def __init__(self) -> None:
        self.here: dict[str, tuple[FileLifetime, Vector | None]] = {}
        self.ended: list[FileLifetime] = []

    def begin(self, file: LiveFile, version: int | None) -> None:
        self.here[file.path] = FileLifetime(file.path, file.bytes, version), file.vector

    def apply(self, commit: LoggedCommit) -> None:
        """Go on by one commit; what it removes and adds again has another vector, or only other statistics."""
        added = {file.path: file for file in commit.added}
        for removed in commit.removed:
            if removed.path in self.here and removed.path not in added:
                life, _ = self.here.pop(removed.path)
                self.ended.append(replace(life, removed=commit.version))
        for path, file in added.items():
            if path not in self.here:
                self.begin(file, commit.version)
            elif self.here[path][1] != file.vector:
                life, _ = self.here[path]
                self.here[path] = replace(life, changes=(*life.changes, commit.version)), file.vector


def _order(life: FileLifetime) -> tuple[int, float, str]:
    removed = float("inf") if life.removed is None else life.removed
    return (-1 if life.added is None else life.added, removed, life.path)
