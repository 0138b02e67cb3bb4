"""When commits were made, by the clock that Delta itself goes by."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CommitTimes:
    """The commits of a log from `first` to the newest, and when each was made.

    Delta dates a commit by its in-commit timestamp, else by when its file was written, at least 1 ms after the one
    before. `written` has the latter; `in_commit` reads the former, and is None for a table without any.
    """

    first: int
    written: tuple[int, ...]
    in_commit: Callable[[int], int | None] | None = None

    @property
    def last(self) -> int:
        """The newest version."""
        return self.first + len(self.written) - 1

    def at(self, version: int) -> int:
        """The version's time in ms since 1970; it is one of the log's."""
        told = self.in_commit(version) if self.in_commit else None
        return self.written[version - self.first] if told is None else told

    def first_from(self, time_ms: int) -> int | None:
        """The first commit made at or after the time, or None when there is none yet."""
        index = bisect_left(range(len(self.written)), time_ms, key=self._at_index)
        return self.first + index if index < len(self.written) else None

    def last_until(self, time_ms: int) -> int | None:
        """The last commit made at or before the time, or None when the log begins later."""
        index = bisect_right(range(len(self.written)), time_ms, key=self._at_index)
        return self.first + index - 1 if index else None

    def _at_index(self, index: int) -> int:
        return self.at(self.first + index)


def increasing(times: Sequence[int]) -> tuple[int, ...]:
    """The times, each at least 1 ms after the one before, as Delta reads them from commit files."""
    adjusted: list[int] = []
    for time in times:
        adjusted.append(max(time, adjusted[-1] + 1) if adjusted else time)
    return tuple(adjusted)
