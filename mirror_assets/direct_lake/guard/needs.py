"""Who needs which files of a table: frames, and the mirror that has yet to read commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from urllib.parse import unquote

from mirror_assets.direct_lake.guard.frames import Frame
from mirror_assets.source.actions import LiveFile, Tombstone
from mirror_assets.source.row_counts import yields_nothing
from mirror_assets.source.table_log import LoggedCommit, TableLog

MIRROR = "mirror"
"""The reader that begins anew when its files are gone, unlike a model, which goes on with those that it has framed."""


class Reads(str, Enum):
    """How the mirror finds changes, which tells the files that it needs of a commit."""

    FEED = "feed"
    ROW_TRACKING = "row_tracking"
    APPEND_ONLY = "append_only"
    ANY = "any"


@dataclass(frozen=True)
class Mirror:
    """A mirror that has covered a version of the table; the commits behind it have yet to be read."""

    covered: int
    reads: Reads = Reads.FEED


@dataclass(frozen=True, order=True)
class Need:
    """Someone needs a version: of a frame all its files, of the mirror's commit those that its changes are in."""

    reader: str
    version: int

    def __str__(self) -> str:
        """`mirror v4`."""
        return f"{self.reader} v{self.version}"


@dataclass
class Needs:
    """Files by path, each with who needs it; `gone` are needs whose files the log doesn't tell any more."""

    files: dict[str, set[Need]] = field(default_factory=lambda: defaultdict(set))
    gone: set[Need] = field(default_factory=set)

    def add(self, paths: Iterable[str], need: Need) -> None:
        """Someone needs these files."""
        for path in paths:
            self.files[path].add(need)


def needs_of(log: TableLog, frames: Iterable[Frame], mirror: Mirror | None, known: Iterable[str]) -> Needs:
    """What the frames and the mirror need; `known` are all paths that the folder has."""
    needs = Needs()
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


def _add_frames(needs: Needs, log: TableLog, frames: tuple[Frame, ...], known: frozenset[str]) -> None:
    """All files of the version count beside those that a model names: its answer may have been cut off."""
    there = set(log.versions())
    whole = defaultdict(list)
    for frame in frames:
        need = Need(frame.reader, frame.version)
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


def _add_mirror(needs: Needs, log: TableLog, mirror: Mirror) -> None:
    """Commits behind one that is gone are no use to the mirror, which starts again with a snapshot there.

    But they are where something else reads the table, too: a history goes on there, and the mirror may be further on.
    """
    logged, newest = set(log.logged()), log.newest()
    missing = [version for version in range(mirror.covered + 1, newest + 1) if version not in logged]
    needs.gone.update(Need(MIRROR, version) for version in missing[:1])
    stretches = list(pairwise([mirror.covered, *missing, newest + 1]))
    for before, behind in stretches if mirror.reads is Reads.ANY else stretches[:1]:
        for commit in log.commits(before + 1, behind - 1):
            needs.add(_OF_COMMIT[mirror.reads](commit), Need(MIRROR, commit.version))


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


_OF_COMMIT: Mapping[Reads, Callable[[LoggedCommit], Iterable[str]]] = {
    Reads.FEED: _of_feed,
    Reads.ROW_TRACKING: _of_row_tracking,
    Reads.APPEND_ONLY: _of_appends,
    Reads.ANY: _of_any,
}
