"""The framing effect over time: one replay of the log, which looks only at files that commits touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mirror_assets.direct_lake.framing.effect import effect_of
from mirror_assets.direct_lake.framing.history import History
from mirror_assets.direct_lake.framing.values import FileSum, FramingEffect, FramingPoint, sum_of
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.table_log import LoggedCommit


def framing_series(history: History, versions: Sequence[int]) -> tuple[FramingPoint, ...]:
    """The effect of each version after the first one, framed after the one before it; versions are ascending.

    Every commit: `history.every_version()`; every day: `history.daily_versions()`; or those that a model was framed at.
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
        """The effect since the last framing; from now on, this is the last."""
        changes = [(before, self._live.get(path)) for path, before in self._touched.items()]
        touched = sum((sum_of(after) for _, after in changes if after is not None), FileSum())
        self._touched.clear()
        return effect_of(replace(FramingEffect(first, last), kept=self._total - touched), changes)

    def _put(self, path: str, file: LiveFile | None) -> None:
        before = self._live.pop(path, None)
        self._touched.setdefault(path, before)
        if before is not None:
            self._total -= sum_of(before)
        if file is not None:
            self._live[path] = file
            self._total += sum_of(file)
