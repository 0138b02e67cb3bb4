"""Which files of a table are still needed: by models' frames, and by the mirror and the history for commits to come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from urllib.parse import unquote

from mirror_assets.direct_lake.vacuum.model_frames import Frame
from mirror_assets.source.actions import LiveFile, Tombstone
from mirror_assets.source.log_paths import is_absolute
from mirror_assets.source.row_counts import yields_nothing
from mirror_assets.source.table_log import LoggedCommit, TableLog

MIRROR = "mirror"
"""A reader that starts again with a snapshot when its files are gone; a model keeps reading what it has framed."""

# Commits of a remote log are read side by side, so many at a time.
_COMMITS = 64


class ChangeSource(str, Enum):
    """How the mirror finds changes, which decides what files of a commit it needs."""

    FEED = "feed"
    ROW_TRACKING = "row_tracking"
    APPEND_ONLY = "append_only"
    ANY = "any"  # several of them: a history reads the table in a way of its own


@dataclass(frozen=True)
class Mirror:
    """A mirror that has covered a version of the table, and has yet to read the commits after it."""

    covered: int
    changes: ChangeSource = ChangeSource.FEED


@dataclass(frozen=True)
class RetentionConsumers:
    """Who still needs older versions of the table, and the hours of `VACUUM … RETAIN`, None without RETAIN."""

    frames: tuple[Frame, ...] = ()
    mirror: Mirror | None = None
    retain_hours: float | None = None


@dataclass(frozen=True, order=True)
class Requirement:
    """A reader needs a version: of a frame all its files, of the mirror's commit those that its changes are in."""

    reader: str
    version: int

    def __str__(self) -> str:
        """`mirror v4`."""
        return f"{self.reader} v{self.version}"


@dataclass
class Requirements:
    """Files by path, each with who needs it; `gone` are requirements whose files the log doesn't list any more."""

    files: dict[str, set[Requirement]] = field(default_factory=lambda: defaultdict(set))
    gone: set[Requirement] = field(default_factory=set)

    def add(self, paths: Iterable[str], requirement: Requirement) -> None:
        """Note that someone needs these files."""
        for path in paths:
            self.files[path].add(requirement)


def requirements_of(
    log: TableLog, frames: Iterable[Frame], mirror: Mirror | None, known: Iterable[str]
) -> Requirements:
    """Collect what the frames and the mirror need; `known` are all paths that the table's folder has."""
    requirements = Requirements()
    _add_frames(requirements, log, frames, frozenset(known))
    if mirror is not None:
        _add_mirror(requirements, log, mirror)
    return requirements


def paths_of(files: Iterable[LiveFile | Tombstone]) -> Iterator[str]:
    """Return the paths of the files and of their deletion vectors."""
    for file in files:
        yield file.path
        if file.vector is not None and file.vector.path is not None:
            yield file.vector.path


def _add_frames(requirements: Requirements, log: TableLog, frames: Iterable[Frame], known: frozenset[str]) -> None:
    """All files of the version count beside those that a model names: its answer may have been cut off."""
    there = set(log.versions())
    whole = defaultdict(list)
    for frame in frames:
        requirement = Requirement(frame.reader, frame.version)
        if frame.version in there:
            whole[frame.version].append(requirement)
        elif not frame.files:
            requirements.gone.add(requirement)
        # It isn't documented whether models spell paths as the storage does, or encoded as the log does.
        requirements.add((path if path in known else unquote(path) for path in frame.files or ()), requirement)
    for snapshot in log.snapshots(whole):
        for requirement in whole[snapshot.version]:
            requirements.add(paths_of(snapshot.files), requirement)


def _add_mirror(requirements: Requirements, log: TableLog, mirror: Mirror) -> None:
    """Commits after one that is gone are of no use to the mirror, which starts again with a snapshot there.

    But they are where something else reads the table, too: a history goes on there, and the mirror may be further on.
    """
    logged, newest = set(log.logged()), log.newest()
    missing = [version for version in range(mirror.covered + 1, newest + 1) if version not in logged]
    requirements.gone.update(Requirement(MIRROR, version) for version in missing[:1])
    stretches = list(pairwise([mirror.covered, *missing, newest + 1]))
    for before, after in stretches if mirror.changes is ChangeSource.ANY else stretches[:1]:
        for commit in log.commits(before + 1, after - 1):
            requirements.add(_files_with_changes(commit, mirror.changes), Requirement(MIRROR, commit.version))


def _files_with_changes(commit: LoggedCommit, changes: ChangeSource) -> Iterable[str]:
    """The files of a commit that the changes are read from (reference `delta` §1)."""
    data_files = paths_of((*commit.added, *commit.removed))
    if changes is ChangeSource.APPEND_ONLY:
        return paths_of(commit.added) if commit.data_change else ()
    if changes is ChangeSource.ROW_TRACKING:  # a slice compares the versions at its ends, which may be any commits
        return data_files
    if changes is ChangeSource.ANY:
        return (*commit.change_files, *data_files)
    if not commit.data_change or yields_nothing(commit):
        return commit.change_files
    return commit.change_files or data_files


def oldest_readable(log: TableLog, stored: Set[str]) -> int | None:
    """Return the first version of which `stored` has every file; None when the newest lacks one, too.

    Files outside of the table's folder are taken to be there.
    """
    for base, last in _unbroken_ranges(log):
        missing = {_key(file) for file in log.snapshot(base).files if _is_missing(file, stored)}
        if not missing:
            return base
        for first in range(base + 1, last + 1, _COMMITS):
            for commit in log.commits(first, min(first + _COMMITS - 1, last)):
                missing -= {_key(file) for file in commit.removed}
                missing |= {_key(file) for file in commit.added if _is_missing(file, stored)}
                if not missing:
                    return commit.version
    return None


def _is_missing(file: LiveFile, stored: Set[str]) -> bool:
    return any(path not in stored and not is_absolute(path) for path in paths_of([file]))


def _unbroken_ranges(log: TableLog) -> Iterator[tuple[int, int]]:
    """Ranges of versions of which each but the first has its commit in the log, ascending."""
    logged, versions = set(log.logged()), log.versions()
    begins = [
        index
        for index, version in enumerate(versions)
        if index == 0 or versions[index - 1] != version - 1 or version not in logged
    ]
    return ((versions[begin], versions[end - 1]) for begin, end in pairwise([*begins, len(versions)]))


def _key(file: LiveFile | Tombstone) -> tuple[str, str]:
    return file.path, file.vector.id if file.vector else ""
