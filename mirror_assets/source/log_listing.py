"""The files of a log's folder, and those that reconstruct a version: a checkpoint, compacted commits, commits."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from pyarrow.fs import FileInfo

from mirror_assets.source.ranges import increasing

_COMMIT = re.compile(r"(\d{20})\.json")
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-fA-F-]{36})?\.(?:parquet|json)")
# Also an incomplete or unreadable one.
_ANY_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")
_VERSION = re.compile(r"(?:\d{20}\.)?(\d{20})\.")
# From this many commits on, reading a checkpoint is faster than reading the commits.
_NEAR = 100


@dataclass(frozen=True)
class LogStep:
    """A step of a replay: the commits [first, last] in a commit file or a compacted one, or a complete checkpoint.

    A checkpoint has the whole version `last`, so its `first` is 0.
    """

    first: int
    last: int
    paths: tuple[str, ...]
    modified_ms: int
    is_checkpoint: bool = False


@dataclass(frozen=True)
class TipMark:
    """The newest commit file of a log: its version, bytes and time of writing, and the number of files in the log."""

    version: int
    bytes: int
    modified_ms: int
    log_files: int


@dataclass(frozen=True)
class LogListing:
    """The files in a log's folder, in any order, without those in subfolders, as in Delta.

    `staged` are the commits of a catalog, by version: they count, also where the log has a file of that version.
    """

    files: Sequence[FileInfo]
    staged: Mapping[int, FileInfo] = field(default_factory=dict)

    @property
    def newest(self) -> int | None:
        """The newest version with a commit or a checkpoint; None without a log."""
        return max([*self._commit_files, *self._checkpoints], default=None)

    @cached_property
    def written(self) -> dict[int, int]:
        """The versions that have a commit file, ascending, and when each was written, in ms since 1970."""
        return dict(sorted((version, written_ms(file)) for version, file in self._commit_files.items()))

    @cached_property
    def dated(self) -> dict[int, int]:
        """The times in `written`, moved to at least 1 ms after the previous commit, as Delta does."""
        return dict(zip(self.written, increasing(list(self.written.values())), strict=True))

    @cached_property
    def commits(self) -> dict[int, LogStep]:
        """The commit files by version, ascending."""
        files = self._commit_files
        return {version: LogStep(version, version, (files[version].path,), at) for version, at in self.written.items()}

    def without(self, paths: Collection[str]) -> LogListing:
        """Return the listing without these files."""
        return replace(self, files=[file for file in self.files if file.path not in paths])

    def up_to(self, version: int) -> LogListing:
        """Return the listing without files of later versions."""
        return replace(self, files=[file for file in self.files if _version(file) <= version])

    def reaches(self, version: int) -> bool:
        """Whether the version's commit exists, or a checkpoint of it."""
        return version in self._commit_files or version in self._checkpoints

    def unbroken(self) -> dict[int, int]:
        """Return those of `written` from which every commit up to the newest exists."""
        holes = [after for before, after in pairwise(self.written) if after != before + 1]
        return {version: time for version, time in self.written.items() if not holes or version >= holes[-1]}

    def tip_mark(self, version: int) -> TipMark | None:
        """Return the mark of the version's commit file; None when it does not exist, or a newer one exists."""
        tip = self._commit_files.get(version)
        if tip is None or max(self._commit_files) > version:
            return None
        return TipMark(version, tip.size or 0, written_ms(tip), len(self.files))

    @cached_property
    def arrivals(self) -> dict[int, LogStep]:
        """The versions that can be reconstructed, ascending, and the last step to each."""
        return self._reached({-1})

    def steps(self, version: int, have: int | None = None) -> list[LogStep] | None:
        """Return the steps to the version: from version `have` if near, else from a checkpoint or from the start.

        None when the version can't be reconstructed.
        """
        if have is not None and version - have <= _NEAR:
            near = _walk(version, have, self._reached({have}, have + 1, version))
            if near is not None:
                return near
        return _walk(version, -1, self.arrivals)

    def gap(self, version: int) -> int:
        """Return the newest missing commit up to the version, regardless of checkpoints."""
        return next(missing for missing in range(version, -2, -1) if missing not in self._commit_files)

    def gap_since_checkpoint(self, version: int) -> int | None:
        """Return the newest missing commit that the version requires; None if none is missing.

        A version is reconstructed from the newest checkpoint up to it, or from the beginning, and every commit since
        (Delta's protocol, "Delta Log Entries" and "Checkpoints"). An incomplete or unreadable checkpoint counts as
        existing: then the checkpoint is lost, not a commit.
        """
        found = (_ANY_CHECKPOINT.fullmatch(file.base_name) for file in self.files)
        since = max((at for match in found if match and (at := int(match[1])) <= version), default=-1)
        return next((commit for commit in range(version, since, -1) if commit not in self._commit_files), None)

    @cached_property
    def _commit_files(self) -> dict[int, FileInfo]:
        found = ((_COMMIT.fullmatch(file.base_name), file) for file in self.files)
        return {int(match[1]): file for match, file in found if match} | dict(self.staged)

    @cached_property
    def _checkpoints(self) -> dict[int, LogStep]:
        """The complete checkpoints; an empty file is one that was never finished."""
        groups: defaultdict[tuple[int, str], list[FileInfo]] = defaultdict(list)
        wanted: dict[tuple[int, str], int] = {}
        matches = ((_CHECKPOINT.fullmatch(file.base_name), file) for file in self.files)
        named = [(file, match) for match, file in matches if match and file.size]
        for file, match in sorted(named, key=lambda one: one[0].path):
            group = (int(match[1]), match[3] or file.base_name)
            groups[group].append(file)
            wanted[group] = int(match[3] or 1)
        return {
            version: LogStep(
                0, version, tuple(file.path for file in found), max(map(written_ms, found)), is_checkpoint=True
            )
            for (version, name), found in groups.items()
            if len(found) == wanted[version, name]
        }

    @cached_property
    def _ending(self) -> dict[int, list[LogStep]]:
        """Commits and compacted commits by their last version, the longest step first."""
        found = ((_COMPACTED.fullmatch(file.base_name), file) for file in self.files)
        compacted = [
            LogStep(int(name[1]), int(name[2]), (file.path,), written_ms(file)) for name, file in found if name
        ]
        ending: defaultdict[int, list[LogStep]] = defaultdict(list)
        for step in sorted([*compacted, *self.commits.values()], key=lambda step: (step.first, step.paths)):
            ending[step.last].append(step)
        return ending

    def _reached(self, beginning: set[int], first: int = 0, last: int | None = None) -> dict[int, LogStep]:
        reached: dict[int, LogStep] = {}
        checkpoints = self._checkpoints if last is None else {}
        versions = sorted({*self._ending, *checkpoints}) if last is None else range(first, last + 1)
        for version in versions:
            steps = (s for s in self._ending.get(version, ()) if s.first - 1 in reached or s.first - 1 in beginning)
            step = checkpoints.get(version) or next(steps, None)
            if step is not None:
                reached[version] = step
        return reached


def _version(file: FileInfo) -> int:
    """Return the last version in a file of the log; -1 for another file."""
    found = _VERSION.match(file.base_name)
    return int(found[1]) if found else -1


def written_ms(file: FileInfo) -> int:
    """Return when the file was written, in ms since 1970."""
    return int((file.mtime_ns or 0) // 1_000_000)


def _walk(version: int, beginning: int, arrivals: dict[int, LogStep]) -> list[LogStep] | None:
    path: list[LogStep] = []
    while version > beginning:
        step = arrivals.get(version)
        if step is None:
            return None
        path.append(step)
        version = step.first - 1
    return path[::-1]
