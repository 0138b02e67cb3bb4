"""How long each file stays in a table: what a chart of lifetimes shows."""

from __future__ import annotations

from dataclasses import replace

from mirror_assets.direct_lake.framing.history import History
from mirror_assets.direct_lake.framing.values import FileLifetime
from mirror_assets.source.actions import LiveFile, Vector
from mirror_assets.source.table_log import LoggedCommit


def file_lifetimes(history: History) -> tuple[FileLifetime, ...]:
    """Every file that was in the table at any time of the history, in the order in which they came.

    The history's first version only tells when its files came if it is the table's first, too.
    """
    files = _Files()
    added = (0, history.start.timestamp_ms) if history.first == 0 else (None, None)
    for file in history.start.files:
        files.begin(file, *added)
    for commit in history.commits:
        files.apply(commit)
    return tuple(sorted(files.all(), key=_order))


class _Files:
    """Files that are there, each with its present deletion vector, and lifetimes that have ended."""

    def __init__(self) -> None:
        self._here: dict[str, tuple[FileLifetime, Vector | None]] = {}
        self._ended: list[FileLifetime] = []

    def begin(self, file: LiveFile, version: int | None, timestamp_ms: int | None) -> None:
        """A file comes."""
        self._here[file.path] = FileLifetime(file.path, file.bytes, file.rows, version, timestamp_ms), file.vector

    def apply(self, commit: LoggedCommit) -> None:
        """Go on by one commit; what it removes and adds again has another vector, or only other statistics."""
        added = {file.path: file for file in commit.added}
        for removed in commit.removed:
            if removed.path in self._here and removed.path not in added:
                life, _ = self._here.pop(removed.path)
                self._ended.append(replace(life, removed=commit.version, removed_ms=commit.timestamp_ms))
        for path, file in added.items():
            if path not in self._here:
                self.begin(file, commit.version, commit.timestamp_ms)
            elif self._here[path][1] != file.vector:
                life, _ = self._here[path]
                self._here[path] = replace(life, changes=(*life.changes, commit.version)), file.vector

    def all(self) -> list[FileLifetime]:
        """Every lifetime, ended or not."""
        return [*self._ended, *(life for life, _ in self._here.values())]


def _order(life: FileLifetime) -> tuple[int, float, str]:
    removed = float("inf") if life.removed is None else life.removed
    return (-1 if life.added is None else life.added, removed, life.path)
