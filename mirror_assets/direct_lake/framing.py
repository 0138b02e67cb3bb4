"""Show what Direct Lake keeps and loads when it frames another version, from the log alone (reference §3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import add, sub

from mirror_assets.direct_lake.log_history import History, Mark
from mirror_assets.direct_lake.table.values import LiveFile, LoggedCommit, Snapshot

_Change = tuple[LiveFile | None, LiveFile | None]


@dataclass(frozen=True)
class FileSum:
    """Some files together. `known_rows` are what those with statistics show, `without_rows` is how many have none.

    `hidden` rows are stored, too, but a deletion vector hides them.
    """

    files: int = 0
    known_rows: int = 0
    without_rows: int = 0
    hidden: int = 0
    bytes: int = 0

    @property
    def rows(self) -> int | None:
        """Rows that the files show, or None when the statistics of one are missing."""
        return None if self.without_rows else self.known_rows

    def __add__(self, other: FileSum) -> FileSum:
        return FileSum(*map(add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: FileSum) -> FileSum:
        return FileSum(*map(sub, vars(self).values(), vars(other).values()))


def sum_of(file: LiveFile) -> FileSum:
    """Count one file."""
    hidden = 0 if file.vector is None else file.vector.rows
    if file.rows is None:
        return FileSum(1, without_rows=1, hidden=hidden, bytes=file.bytes)
    return FileSum(1, file.rows - hidden, hidden=hidden, bytes=file.bytes)


@dataclass(frozen=True)
class FramingEffect:
    """What a model framed at version `first` keeps and loads when it is framed at `last`.

    `kept` files are the same in both, deletion vector included; `changed` ones have another vector: what Direct Lake
    does with what it holds of them is not documented (reference `direct-lake` §4); `reloaded` ones are new. All three
    are counted as of `last`, `dropped` ones as of `first`. `vector_bytes` are the deletion vectors to read.
    """

    first: int
    last: int
    kept: FileSum = FileSum()
    changed: FileSum = FileSum()
    reloaded: FileSum = FileSum()
    dropped: FileSum = FileSum()
    vector_bytes: int = 0

    @property
    def total(self) -> FileSum:
        """All files of `last`."""
        return self.kept + self.changed + self.reloaded

    @property
    def bytes_to_load(self) -> int:
        """Bytes of new files and vectors; a model that doesn't use every column loads less."""
        return self.reloaded.bytes + self.vector_bytes

    @property
    def reloaded_share(self) -> float | None:
        """Rows of new files, of all rows of `last`; None when these are not known, or when there are none."""
        rows = self.total.rows
        return self.reloaded.rows / rows if rows and self.reloaded.rows is not None else None


def framing_effect(first: Snapshot, last: Snapshot) -> FramingEffect:
    """Compare two versions; either may be the newer one."""
    before = {file.path: file for file in first.files}
    after = {file.path: file for file in last.files}
    changes: list[_Change] = [(before.get(path), file) for path, file in after.items()]
    changes += [(file, None) for path, file in before.items() if path not in after]
    return _with_changes(FramingEffect(first.version, last.version), changes)


def _with_changes(effect: FramingEffect, changes: Iterable[_Change]) -> FramingEffect:
    """Add files to the effect, each as it was and as it is; None: not there."""
    kept, changed, reloaded, dropped = effect.kept, effect.changed, effect.reloaded, effect.dropped
    vector_bytes = effect.vector_bytes
    for before, after in changes:
        if after is None:
            dropped += FileSum() if before is None else sum_of(before)
        elif before is not None and before.vector == after.vector:
            kept += sum_of(after)
        else:
            vector_bytes += 0 if after.vector is None else after.vector.bytes
            if before is None:
                reloaded += sum_of(after)
            else:
                changed += sum_of(after)
    return replace(effect, kept=kept, changed=changed, reloaded=reloaded, dropped=dropped, vector_bytes=vector_bytes)


@dataclass(frozen=True)
class FramingPoint:
    """One framing of several: when `effect.last` was committed, and the maintenance since `effect.first`."""

    timestamp_ms: int
    effect: FramingEffect
    marks: tuple[Mark, ...] = ()


def framing_series(history: History, versions: Sequence[int]) -> tuple[FramingPoint, ...]:
    """Return the effect of each version after the first one, framed after the one before it; versions are ascending.

    One replay of the log, which compares only files that commits touch.
    """
    replay, points = _Replay(history.start), []
    commits = iter(history.commits)
    for first, last in zip([history.first, *versions], versions, strict=False):
        for _ in range(first, last):
            replay.apply(next(commits))
        effect = replay.framed(first, last)
        points.append(FramingPoint(history.time_ms(last), effect, history.marks(first, last)))
    return tuple(points[1:])


class _Replay:
    """The live files at one version, and what those were, at the last framing, that were touched since then."""

    def __init__(self, start: Snapshot) -> None:
        self._live = {file.path: file for file in start.files}
        self._total = sum(map(sum_of, start.files), FileSum())
        self._touched: dict[str, LiveFile | None] = {}

    def apply(self, commit: LoggedCommit) -> None:
        """Go on by one commit; removals come first, for a new deletion vector is a removal and an addition."""
        for removed in commit.removed:
            self._put(removed.path, None)
        for added in commit.added:
            self._put(added.path, added)

    def framed(self, first: int, last: int) -> FramingEffect:
        """Return the effect since the last framing; from now on, this is the last."""
        changes = [(before, self._live.get(path)) for path, before in self._touched.items()]
        touched = sum((sum_of(after) for _, after in changes if after is not None), FileSum())
        self._touched.clear()
        return _with_changes(FramingEffect(first, last, kept=self._total - touched), changes)

    def _put(self, path: str, file: LiveFile | None) -> None:
        before = self._live.pop(path, None)
        self._touched.setdefault(path, before)
        if before is not None:
            self._total -= sum_of(before)
        if file is not None:
            self._live[path] = file
            self._total += sum_of(file)
