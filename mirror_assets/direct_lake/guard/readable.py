"""The oldest version of a table whose files are all still there."""

from __future__ import annotations

from collections.abc import Iterator, Set

from mirror_assets.direct_lake.guard.needs import paths_of
from mirror_assets.source.actions import LiveFile, Tombstone
from mirror_assets.source.log_paths import is_absolute
from mirror_assets.source.table_log import TableLog

# Commits of a remote log are read side by side, so many at a time.
_COMMITS = 64


def oldest_readable(log: TableLog, stored: Set[str]) -> int | None:
    """The first version of which `stored` has every file; None when the newest lacks one, too.

    Of files outside of the table's folder nothing is known: they are taken as there.
    """
    for base, last in _runs(log):
        missing = {_key(file) for file in log.snapshot(base).files if is_missing(file, stored)}
        if not missing:
            return base
        for first in range(base + 1, last + 1, _COMMITS):
            for commit in log.commits(first, min(first + _COMMITS - 1, last)):
                missing -= {_key(file) for file in commit.removed}
                missing |= {_key(file) for file in commit.added if is_missing(file, stored)}
                if not missing:
                    return commit.version
    return None


def is_missing(file: LiveFile, stored: Set[str]) -> bool:
    """Whether the file or its deletion vector should be in the table's folder and isn't."""
    return any(path not in stored and not is_absolute(path) for path in paths_of([file]))


def _runs(log: TableLog) -> Iterator[tuple[int, int]]:
    """Ranges of versions of which each but the first has its commit in the log, ascending."""
    logged = set(log.logged())
    base = last = -1
    for version in log.versions():
        if base < 0 or version != last + 1 or version not in logged:
            if base >= 0:
                yield base, last
            base = version
        last = version
    if base >= 0:
        yield base, last


def _key(file: LiveFile | Tombstone) -> tuple[str, str]:
    return file.path, file.vector.id if file.vector else ""
