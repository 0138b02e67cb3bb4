"""Which files of a table models, the mirror and the history still need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from urllib.parse import unquote

from mirror_assets.delta.rows import yields_nothing
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.paths import is_absolute
from mirror_assets.direct_lake.table.values import LiveFile, LoggedCommit, Tombstone
from mirror_assets.direct_lake.vacuum.model_frames import Frame

MIRROR = "mirror"
"""The reader that begins anew when its files are gone, unlike a model, which goes on with those that it has framed."""


class ChangeSource(str, Enum):
    """How the mirror finds changes, which tells the files that it needs of a commit."""

    FEED = "feed"
    ROW_TRACKING = "row_tracking"
    APPEND_ONLY = "append_only"
    ANY = "any"


@dataclass(frozen=True)
class Mirror:
    """A mirror that has covered a version of the table; the commits behind it have yet to be read."""

    covered: int
    reads: ChangeSource = ChangeSource.FEED


@dataclass(frozen=True, order=True)
class Requirement:
    """Someone needs a version: of a frame all its files, of the mirror's commit those that its changes are in."""

    reader: str
    version: int

    def __str__(self) -> str:
        """`mirror v4`."""
        return f"{self.reader} v{self.version}"


@dataclass
class Requirements:
    """Files by path, each with who needs it; `gone` are needs whose files the log doesn't tell any more."""

    files: dict[str, set[Requirement]] = field(default_factory=lambda: defaultdict(set))
    gone: set[Requirement] = field(default_factory=set)

    def add(self, paths: Iterable[str], need: Requirement) -> None:
        """Someone needs these files."""
        for path in paths:
            self.files[path].add(need)


def needs_of(log: TableLog, frames: Iterable[Frame], mirror: Mirror | None, known: Iterable[str]) -> Requirements:
    """What the frames and the mirror need; `known` are all paths that the folder has."""
    needs = Requirements()
    _add_frames(needs, log, tuple(frames), frozenset(known))
    if mirror is not None:
        _add_mirror(needs, log, mirror)
    return needs


def paths_of(files: Iterable[LiveFile | Tombstone]) -> Iterator[str]:
    """The paths of the files and of their deletion vectors."""
    for file in files:
        yield file.path
        if file.vector is not None and file.vector.path is not None:
            yield file.vector.path


def _add_frames(needs: Requirements, log: TableLog, frames: tuple[Frame, ...], known: frozenset[str]) -> None:
    """All files of the version count beside those that a model names: its answer may have been cut off."""
    there = set(log.versions())
    whole = defaultdict(list)
    for frame in frames:
        need = Requirement(frame.reader, frame.version)
        if frame.version in there:
            whole[frame.version].append(need)
        elif not frame.files:
            needs.gone.add(need)
        needs.add((_spelled(path, known) for path in frame.files or ()), need)
    for snapshot in log.snapshots(whole):
        for need in whole[snapshot.version]:
            needs.add(paths_of(snapshot.files), need)


def _spelled(path: str, known: frozenset[str]) -> str:
    """The file's name on the storage: it isn't documented whether models spell it so, or encoded as the log does."""
    return path if path in known else unquote(path)


def _add_mirror(needs: Requirements, log: TableLog, mirror: Mirror) -> None:
    """Commits behind one that is gone are no use to the mirror, which starts again with a snapshot there.

    But they are where something else reads the table, too: a history goes on there, and the mirror may be further on.
    """
    logged, newest = set(log.logged()), log.newest()
    missing = [version for version in range(mirror.covered + 1, newest + 1) if version not in logged]
    needs.gone.update(Requirement(MIRROR, version) for version in missing[:1])
    stretches = list(pairwise([mirror.covered, *missing, newest + 1]))
    for before, behind in stretches if mirror.reads is ChangeSource.ANY else stretches[:1]:
        for commit in log.commits(before + 1, behind - 1):
            needs.add(_OF_COMMIT[mirror.reads](commit), Requirement(MIRROR, commit.version))


def _of_feed(commit: LoggedCommit) -> Iterable[str]:
    """Its change files alone where there are any, else all that it adds and removes (reference `delta` §1)."""
    if not commit.data_change or yields_nothing(commit):
        return commit.change_files
    return commit.change_files or paths_of((*commit.added, *commit.removed))


def _of_row_tracking(commit: LoggedCommit) -> Iterable[str]:
    """All: a slice compares the versions at its ends, and may begin or end at any commit."""
    return paths_of((*commit.added, *commit.removed))


def _of_appends(commit: LoggedCommit) -> Iterable[str]:
    return paths_of(commit.added) if commit.data_change else ()


def _of_any(commit: LoggedCommit) -> Iterable[str]:
    """All that any of the ways needs, for a table that is read in several."""
    return (*commit.change_files, *paths_of((*commit.added, *commit.removed)))


_OF_COMMIT: Mapping[ChangeSource, Callable[[LoggedCommit], Iterable[str]]] = {
    ChangeSource.FEED: _of_feed,
    ChangeSource.ROW_TRACKING: _of_row_tracking,
    ChangeSource.APPEND_ONLY: _of_appends,
    ChangeSource.ANY: _of_any,
}


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
