"""The files that differ between the versions around some commits, by the log: what comparing the versions reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mirror_assets.source.commits import Commit, FileVersion


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
        self.changed_rows += commit.changed_rows
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
