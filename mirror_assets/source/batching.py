"""Batches of work: commits into slices, the rows of a slice into parts, a large table's files into chunks.

A slice that is read by files costs the files that differ between the versions around its commits (`DifferingFiles`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mirror_assets.source.commits import Commit, FileVersion, SourceState
from mirror_assets.source.live_file_columns import LiveFileColumns

# A commit with more than this share (an eighth) of a part's rows gets its own part if that saves pairing its rows.
_OWN_PART_SHARE = 8
# A part with this many values takes one core some seconds; with larger parts, wide tables would leave cores idle.
_VALUES_OF_PART = 25_000_000
# A hundred billion rows by default; a wrong number of rows in the log must not make as many tasks.
_MOST_PARTS = 100_000
# Of a slice that is read, a file takes some 1 KB on the driver: 100 MB for this many.
_MAX_FILES = 100_000


@dataclass(frozen=True)
class Limits:
    """The maximum size of a slice; a single commit, or file of a chunk, beyond a limit is a slice of its own.

    `max_files` are those that the actions of its commits name. `mixes_rewrites`: a slice by files may have commits that
    only rewrite rows between others, and reads their files.
    """

    max_commits: int
    max_rows: int
    max_bytes: int
    mixes_rewrites: bool = False
    max_files: int = _MAX_FILES


@dataclass(frozen=True)
class PartAssignment:
    """The parts of a commit's rows: `first_part` to `first_part + parts - 1`.

    `unpaired`: the parts are its own, and its rows land without being paired, if the log is right about them.
    """

    version: int
    first_part: int
    parts: int
    unpaired: bool = False


def batch_commits(
    commits: Iterable[Commit], limits: Limits, last_versions: Container[int]
) -> Iterator[tuple[Commit, ...]]:
    """Yield the commits in groups, in order: each is as long as the limits allow, and ends at any of `last_versions`.

    Commits that are read by comparing versions cost the files that differ. A cut depends only on the commits after the
    previous cut, so planning from any cut on gives the same groups. A version is looked up in `last_versions` when the
    commit after it has been taken from `commits`.
    """
    group: list[Commit] = []
    reads: DifferingFiles | _FeedReads = _FeedReads()
    files = 0
    for commit in commits:
        files += commit.named_files
        reads.add(commit)
        fits = (
            len(group) < limits.max_commits
            and reads.rows <= limits.max_rows
            and reads.bytes <= limits.max_bytes
            and files <= limits.max_files
            and (limits.mixes_rewrites or not reads.mixes_rewrites)
        )
        if group and (not fits or group[-1].version in last_versions):
            yield tuple(group)
            group = []
        if not group:
            files, reads = commit.named_files, _FeedReads() if commit.by_files is None else DifferingFiles()
            reads.add(commit)
        group.append(commit)
    if group:
        yield tuple(group)


@dataclass
class _FeedReads:
    """Sums up what the feed of commits reads."""

    rows: int = 0
    bytes: int = 0
    mixes_rewrites: bool = False

    def add(self, commit: Commit) -> None:
        self.rows += commit.rows
        self.bytes += commit.bytes


def assign_parts(commits: Sequence[Commit], target_rows: int) -> tuple[PartAssignment, ...]:
    """Assign parts to every commit that changes data: small commits share a part, a large one has several of its own.

    Parts in order have commits in order; a part has about `target_rows` at most (docs/encoding.md).
    """
    assignments: list[PartAssignment] = []
    part = filled = 0
    started = False
    for commit in commits:
        if not commit.changes_data:
            continue
        unpaired = not commit.mixes and commit.rows > target_rows // _OWN_PART_SHARE
        alone = unpaired or commit.rows > target_rows
        if started and (alone or filled + commit.rows > target_rows):
            part, filled, started = part + 1, 0, False
        parts = parts_for(commit.rows, target_rows)
        assignments.append(PartAssignment(commit.version, part, parts, unpaired))
        if alone:
            part += parts
        else:
            filled, started = filled + commit.rows, True
    return tuple(assignments)


def rows_of_part(target_rows: int, columns: int) -> int:
    """Return the rows that a part for this many columns should have: fewer than the target if the table is wide."""
    return max(1, min(target_rows, _VALUES_OF_PART // max(1, columns)))


def parts_for(rows: int, target_rows: int) -> int:
    """Return the number of parts for the rows: at least one, and few enough for Spark, whatever statistics say."""
    return max(1, min(_MOST_PARTS, -(-rows // target_rows)))


@dataclass(frozen=True)
class FileChunk:
    """The `number`-th of `of` chunks: files `first` to `end` - 1 of a version with `files`, in order of their paths."""

    number: int
    of: int
    first: int
    end: int
    files: int
    rows: int
    bytes: int

    def __str__(self) -> str:
        """`3 of 7`."""
        return f"{self.number} of {self.of}"


def is_small(state: SourceState, limits: Limits) -> bool:
    """Whether the whole table fits one slice."""
    return state.likely_rows <= limits.max_rows and state.bytes <= limits.max_bytes and state.files <= limits.max_files


def chunk_files(files: LiveFileColumns, limits: Limits, chunks: int = 0, landed: int = 0) -> tuple[FileChunk, ...]:
    """Split `files` into chunks, in their order, after `chunks` chunks with the first `landed` files.

    Each is as long as the limits allow; a file beyond a limit is a chunk of its own. A cut depends only on the files
    after the previous cut, so continuing after any chunk gives the same chunks.
    """
    rows, size = (np.concatenate([[0], np.cumsum(column)]) for column in (files.likely_rows, files.bytes))
    bounds = [landed]
    while bounds[-1] < len(files):
        first = bounds[-1]
        fitting = (
            int(np.searchsorted(rows, rows[first] + limits.max_rows, "right")) - 1,
            int(np.searchsorted(size, size[first] + limits.max_bytes, "right")) - 1,
            first + limits.max_files,
        )
        bounds.append(max(first + 1, min(*fitting, len(files))))
    return tuple(
        FileChunk(
            number=chunks + index,
            of=chunks + len(bounds) - 1,
            first=first,
            end=end,
            files=len(files),
            rows=int(rows[end] - rows[first]),
            bytes=int(size[end] - size[first]),
        )
        for index, (first, end) in enumerate(pairwise(bounds), 1)
    )


@dataclass(frozen=True)
class Compared:
    """A slice that is read by files: the versions to compare, and the number and bytes of the files that differ.

    `because` is the reason why the change data feed is not read; empty if the settings choose files.
    """

    before: int
    last: int
    files: int
    bytes: int
    because: str = ""


class DifferingFiles:
    """Sums up commits in order: the versions to compare for their changes, and the files that only one of them has.

    Commits that only rewrite rows, like OPTIMIZE, cost nothing before the first and after the last commit that changes
    data. `mixes_rewrites`: one of them is between, so its files are compared too.
    """

    def __init__(self, commits: Iterable[Commit] = ()) -> None:
        """Add these commits."""
        self.rows = self.bytes = self.files = self.changed_rows = 0
        self.mixes_rewrites = False
        self._versions: tuple[int, int] | None = None
        self._waiting: list[Commit] = []
        self._old = dict[str, FileVersion]()
        self._new = dict[str, FileVersion]()
        for commit in commits:
            self.add(commit)

    def add(self, commit: Commit) -> None:
        """Add the next commit."""
        if not (commit.changes_data and (commit.added or commit.removed)):
            self._waiting += [commit] if self._versions else []
            return
        self._versions = (self._versions[0] if self._versions else commit.version - 1, commit.version)
        self.changed_rows += commit.rows
        self.mixes_rewrites |= any(waiting.added or waiting.removed for waiting in self._waiting)
        for one in (*self._waiting, commit):
            for file in one.removed:
                self._count(file.path, -1)
                if self._new.pop(file.path, None) is None:
                    self._old[file.path] = file
                self._count(file.path, 1)
            for file in one.added:
                self._count(file.path, -1)
                self._new[file.path] = file
                self._count(file.path, 1)
        self._waiting.clear()

    def compared(self, because: str = "") -> Compared | None:
        """Return the versions to compare, and the files of which they read rows; None if no commit changes data."""
        return Compared(*self._versions, self.files, self.bytes, because) if self._versions else None

    def _count(self, path: str, sign: int) -> None:
        """Add or subtract what is read of the file: all of it, or the rows that only one version's vector hides."""
        old, new = self._old.get(path), self._new.get(path)
        one = new or old
        if one is None or old == new:
            return
        self.files += sign
        self.bytes += sign * one.bytes
        self.rows += sign * (abs(old.rows - new.rows) if old and new else one.rows)
