"""The files of a log, and which of them lead to a version: a checkpoint, compacted files, commits."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from mirror_assets.source.files import StoredFile

_COMMIT = re.compile(r"(\d{20})\.json")
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-fA-F-]{36})?\.(?:parquet|json)")
# From here on a checkpoint is read rather than so many commits behind the version at hand.
_NEAR = 100


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint: a whole version."""

    version: int
    parts: tuple[str, ...]
    modified_ms: int


@dataclass(frozen=True)
class Span:
    """The commits [first, last] in one file: a commit file has one of them, a compacted one more."""

    first: int
    last: int
    path: str
    modified_ms: int


Step = Checkpoint | Span


@dataclass(frozen=True)
class LogFiles:
    """What a log's folder has; `commits` by version, ascending."""

    commits: dict[int, Span]
    compacted: tuple[Span, ...]
    checkpoints: dict[int, Checkpoint]

    @classmethod
    def of(cls, listing: Iterable[StoredFile]) -> LogFiles:
        """The log's files among those listed, which are below the log's folder."""
        files = sorted(listing, key=lambda file: file.path)
        named = [(file, file.path.rpartition("/")[2]) for file in files]
        commits = [(_span(match, file), file) for file, name in named if (match := _COMMIT.fullmatch(name))]
        compacted = [_span(match, file) for file, name in named if (match := _COMPACTED.fullmatch(name))]
        return cls({span.first: span for span, _ in commits}, tuple(compacted), _checkpoints(files))

    @property
    def newest(self) -> int | None:
        """The newest version that the log tells of; None when there is no log."""
        return max([*self.commits, *self.checkpoints], default=None)

    @cached_property
    def arrivals(self) -> dict[int, Step]:
        """Per version that can be put together, ascending, the last step to it."""
        return self._reached({-1})

    def steps(self, version: int, have: int | None = None) -> list[Step] | None:
        """What leads to the version: from version `have` if that is near, else from a checkpoint or the beginning.

        None when it can't be put together.
        """
        if have is not None and version - have <= _NEAR:
            near = self._walk(version, have, self._reached({have}, have + 1, version))
            if near is not None:
                return near
        return self._walk(version, -1, self.arrivals)

    def gap(self, version: int) -> int:
        """The newest commit up to the version that is missing."""
        return next(missing for missing in range(version, -2, -1) if missing not in self.commits)

    @cached_property
    def _ending(self) -> dict[int, list[Span]]:
        """Spans by their last version, the longest first."""
        ending: defaultdict[int, list[Span]] = defaultdict(list)
        for span in sorted([*self.compacted, *self.commits.values()], key=lambda span: span.first):
            ending[span.last].append(span)
        return ending

    def _reached(self, beginning: set[int], first: int = 0, last: int | None = None) -> dict[int, Step]:
        reached: dict[int, Step] = {}
        checkpoints = self.checkpoints if last is None else {}
        versions = sorted({*self._ending, *checkpoints}) if last is None else range(first, last + 1)
        for version in versions:
            spans = (s for s in self._ending.get(version, ()) if s.first - 1 in reached or s.first - 1 in beginning)
            step = checkpoints.get(version) or next(spans, None)
            if step is not None:
                reached[version] = step
        return reached

    @staticmethod
    def _walk(version: int, beginning: int, arrivals: dict[int, Step]) -> list[Step] | None:
        path: list[Step] = []
        while version > beginning:
            step = arrivals.get(version)
            if step is None:
                return None
            path.append(step)
            if isinstance(step, Checkpoint):
                break
            version = step.first - 1
        return path[::-1]


def _span(match: re.Match[str], file: StoredFile) -> Span:
    return Span(int(match[1]), int(match[match.lastindex or 1]), file.path, file.modified_ms)


def _checkpoints(files: Iterable[StoredFile]) -> dict[int, Checkpoint]:
    """The complete ones; an empty file is one that was never finished."""
    groups: defaultdict[tuple[int, str], list[StoredFile]] = defaultdict(list)
    wanted: dict[tuple[int, str], int] = {}
    for file in files:
        name = file.path.rpartition("/")[2]
        match = _CHECKPOINT.fullmatch(name)
        if match and file.bytes:
            group = (int(match[1]), match[3] or name)
            groups[group].append(file)
            wanted[group] = int(match[3] or 1)
    return {
        group[0]: Checkpoint(group[0], tuple(file.path for file in found), max(file.modified_ms for file in found))
        for group, found in groups.items()
        if len(found) == wanted[group]
    }


# Also one that is not whole, or can't be read: then no commit is what is missing.
_ANY_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")


def missing_commit(names: Iterable[str], version: int) -> int | None:
    """The newest commit without which the version can't be put together; None if nothing is missing by these names.

    A version is put together from the newest checkpoint up to it, or from the beginning, and every commit since
    (Delta's protocol, "Delta Log Entries" and "Checkpoints").
    """
    listed = list(names)
    commits = {int(match[1]) for name in listed if (match := _COMMIT.fullmatch(name))}
    checkpoints = {int(match[1]) for name in listed if (match := _ANY_CHECKPOINT.fullmatch(name))}
    since = max((at for at in checkpoints if at <= version), default=-1)
    return next((commit for commit in range(version, since, -1) if commit not in commits), None)
