"""A stretch of a table's log, read once: its first version as a whole, and the commits behind it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo

from mirror_assets.direct_lake.framing.values import Maintenance, Mark
from mirror_assets.direct_lake.time_travel.resolve import committed_by
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.table_log import LoggedCommit, TableLog

# Of a VACUUM's two commits the second says that it is done; Spark and delta-rs write the same words.
_MARKED = {
    "OPTIMIZE": Maintenance.OPTIMIZE,
    "REORG": Maintenance.REORG,
    "VACUUM END": Maintenance.VACUUM,
    "RESTORE": Maintenance.RESTORE,
}


@dataclass(frozen=True)
class History:
    """The versions from `start`'s to the last commit's."""

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
        """Maintenance behind version `after`, up to `last`."""
        commits = map(self._commit, range(after + 1, last + 1))
        return tuple(
            Mark(commit.version, commit.timestamp_ms, _MARKED[commit.operation])
            for commit in commits
            if commit.operation in _MARKED
        )

    def every_version(self) -> tuple[int, ...]:
        """All versions, ascending."""
        return tuple(range(self.first, self.last + 1))

    def daily_versions(self, zone: tzinfo = timezone.utc) -> tuple[int, ...]:
        """The first version, and the last of each of the zone's days on which there was a commit."""
        days = {self._day(version, zone): version for version in self.every_version()}
        return tuple(sorted({self.first, *days.values()}))

    def _day(self, version: int, zone: tzinfo) -> str:
        return datetime.fromtimestamp(self.time_ms(version) / 1000, zone).date().isoformat()

    def _commit(self, version: int) -> LoggedCommit:
        return self.commits[version - self.first - 1]


def read_history(log: TableLog, first: int | None = None, last: int | None = None) -> History:
    """The history from `first` (the oldest version that nothing is missing behind) to `last` (the newest).

    Raises LogGap for a version that is gone.
    """
    end = log.newest() if last is None else last
    begin = _unbroken(log, end) if first is None else first
    return History(log.snapshot(begin), log.commits(begin + 1, end))


def recent_history(log: TableLog, since_ms: int) -> History:
    """From the version that was the newest at `since_ms` (since 1970) on, or as far back as no commit is missing."""
    newest_then, unbroken = committed_by(log, since_ms), _unbroken(log, log.newest())
    return read_history(log, unbroken if newest_then is None else max(newest_then, unbroken))


def _unbroken(log: TableLog, end: int) -> int:
    """The first version behind which each commit up to the end is there."""
    there, logged, begin = set(log.versions()), set(log.logged()), end
    while begin in logged and begin - 1 in there:
        begin -= 1
    return begin
