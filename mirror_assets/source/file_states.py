"""Follows data files through commits by the protocol's reconciliation of actions: a file is live once or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from mirror_assets.source.actions import Actions, LiveFile, Metadata, Tombstone
from mirror_assets.source.live_paths import LivePaths
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import with_physical_names

FileState = LiveFile | Tombstone
"""A live file as the log describes it: where it is added, or where it is removed."""


@dataclass(frozen=True)
class Transition:
    """A file before and after a commit; None where it isn't live. `data_change`: the commit says that rows change."""

    path: str
    before: FileState | None
    after: FileState | None
    data_change: bool

    @property
    def balance(self) -> int | None:
        """The rows shown after the commit less those before, by statistics and vectors; None if unknown."""
        if self.is_unchanged:
            return 0
        if self.before is not None and self.after is not None:
            return self.before.hidden_rows - self.after.hidden_rows
        file, sign = (self.before, -1) if self.after is None else (self.after, 1)
        return None if file is None or file.rows is None else sign * (file.rows - file.hidden_rows)

    @property
    def is_unchanged(self) -> bool:
        """Whether the same rows of it are live."""
        if self.before is None or self.after is None:
            return self.before is self.after
        return vector_id(self.before) == vector_id(self.after)


def vector_id(file: FileState) -> str | None:
    """Return the id of the file's deletion vector; None without one."""
    return file.vector.id if file.vector else None


@dataclass
class FileStates:
    """The states of the files that commits touch, one commit after another.

    `base` are the live files before the first commit; without it, every file that is removed counts as live, and every
    added one as new. `earlier` returns the files before the first commit, for a file that an action describes in part.
    """

    base: LivePaths | None
    metadata: Metadata
    earlier: Callable[[], Mapping[str, LiveFile]]
    first: dict[str, FileState | None] = field(default_factory=dict)
    now: dict[str, FileState | None] = field(default_factory=dict)

    @classmethod
    def after(cls, log: DeltaLog, version: int, table_id: str | None = None) -> FileStates:
        """Return the states after a version. Raises LogGap if the log can't reconstruct it."""
        live = log.live_paths(version, table_id)

        @cache
        def earlier() -> Mapping[str, LiveFile]:
            fresh = DeltaLog(log.uri, log.access)
            snapshot = next(fresh.snapshots([version]))
            return {file.path: file for file in with_physical_names(snapshot.files, snapshot.metadata)}

        return cls(live, live.metadata, earlier)

    def apply(self, actions: Actions) -> Iterator[Transition]:
        """Apply a commit; yield each file that it names."""
        removed = {file.path: file for file in actions.removed}
        added = {file.path: file for file in actions.added}
        for path in removed | added:
            before, tombstone = self._before(path, removed.get(path)), removed.get(path)
            after: FileState | None = added.get(path)
            if after is None and before is not None and tombstone and vector_id(before) != vector_id(tombstone):
                after = before  # the removed file has another vector, so it isn't the live one
            self.first.setdefault(path, before)
            self.now[path] = after
            actions_of_file = (file for file in (tombstone, added.get(path)) if file)
            yield Transition(path, before, after, any(file.data_change for file in actions_of_file))

    def changed(self) -> Iterator[Transition]:
        """Yield each file whose rows differ before and after all commits."""
        for path, before in self.first.items():
            transition = Transition(path, before, self.now[path], data_change=True)
            if not transition.is_unchanged:
                yield transition

    def _before(self, path: str, tombstone: Tombstone | None) -> FileState | None:
        if path in self.now:
            return self.now[path]
        if self.base is None:
            return tombstone
        if path not in self.base:
            return None
        if tombstone is not None and self._is_complete(tombstone):
            return tombstone
        return self.earlier().get(path)

    def _is_complete(self, tombstone: Tombstone) -> bool:
        """Whether a remove action has what reading the file's rows takes."""
        has_values = tombstone.partition is not None or not self.metadata.partition_columns
        return has_values and (tombstone.base_row_id is not None or not self.metadata.row_tracking)
