"""Follows data files through commits by the protocol's reconciliation of actions: a file is live once or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from mirror_assets.source.actions import Actions, LiveFile, Metadata, Tombstone, is_other_file
from mirror_assets.source.errors import FILE_OVERWRITTEN
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import LivePaths, physical_partitions, with_physical_names

FileState = LiveFile | Tombstone
"""A live file as the log describes it: where it is added, or where it is removed."""


@dataclass(frozen=True, slots=True)
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
    added one as new. `earlier` returns the files before the first commit, by the paths that the log has: those that the
    commits touch are enough. It is called for a file that an action describes in part, and for a removed one that may
    have another vector, or that `base` lacks.
    """

    base: LivePaths | None
    metadata: Metadata
    earlier: Callable[[], Mapping[str, LiveFile]]
    uri: str
    first: dict[str, FileState | None] = field(default_factory=dict)
    now: dict[str, FileState | None] = field(default_factory=dict)
    _removed: dict[str, FileState] = field(default_factory=dict)

    @classmethod
    def after(
        cls, log: DeltaLog, version: int, table_id: str | None, commits: Sequence[tuple[int, Actions]]
    ) -> FileStates:
        """Return the states after a version, to which `commits` will be applied.

        Raises LogGap if the log can't reconstruct the version.
        """
        live = log.live_paths(version, table_id)

        @cache
        def earlier() -> Mapping[str, LiveFile]:
            fresh = log.reopened()
            touched = {file.path for _, actions in commits for file in actions.removed}
            touched |= {file.path for _, actions in commits for file in actions.added}
            snapshot = next(fresh.snapshots([version], touched))
            return {file.key: file for file in with_physical_names(snapshot.files, snapshot.metadata)}

        return cls(live, live.metadata, earlier, log.uri)

    def apply(self, actions: Actions) -> Iterator[Transition]:
        """Apply a commit; yield each file that it names.

        Raises FILE_OVERWRITTEN if it adds a file under the name of another one, of which rows are to be read.
        """
        removed: dict[str, dict[str | None, Tombstone]] = {}
        for tombstone in actions.removed:
            removed.setdefault(tombstone.key, {})[vector_id(tombstone)] = tombstone
        added = {file.key: file for file in actions.added}
        for key in removed | added:
            tombstones = removed.get(key, {})
            before = self._before(key, tombstones)
            # A file is removed with its vector: an action with another one leaves the live file.
            is_removed = before is not None and vector_id(before) in tombstones
            new = added.get(key)
            after: FileState | None = new or (None if is_removed else before)
            old = before or self._removed.get(key)
            if new and old and is_other_file(old, new):
                raise FILE_OVERWRITTEN(uri=self.uri, path=new.path)
            if before and is_removed:
                self._removed[key] = before
            self.first.setdefault(key, before)
            self.now[key] = after
            named = [file for file in (*tombstones.values(), new) if file]
            yield Transition(named[0].path, before, after, any(file.data_change for file in named))

    def changed(self) -> Iterator[Transition]:
        """Yield each file whose rows differ before and after all commits."""
        for key, before in self.first.items():
            after = self.now[key]
            state = before or after
            if state is not None:
                transition = Transition(state.path, before, after, data_change=True)
                if not transition.is_unchanged:
                    yield transition

    def _before(self, key: str, tombstones: Mapping[str | None, Tombstone]) -> FileState | None:
        """Return the state of a file before a commit that removes it with the vectors of `tombstones`."""
        if key in self.now:
            return self.now[key]
        if self.base is None:
            # Of several vectors, the live one isn't known: without one, more rows would be removed.
            tombstone = next((file for file in tombstones.values() if file.vector), tombstones.get(None))
            if tombstone is None or self._has_values(tombstone):
                return tombstone
            return replace(tombstone, partition=None)  # a value that is missing isn't NULL
        if key not in self.base:
            # delta-rs, which `base` is from, may lack it.
            return self.earlier().get(key) if tombstones else None
        tombstone = next(iter(tombstones.values())) if len(tombstones) == 1 else None
        if tombstone is None or (tombstone.vector is None and "deletionVectors" in self.base.protocol.features):
            # Which vector the live file has isn't known: a writer that doesn't know vectors leaves them out. One that
            # names a vector knows it.
            return self.earlier().get(key)
        is_complete = self._has_values(tombstone) and (
            tombstone.base_row_id is not None or not self.metadata.row_tracking
        )
        return tombstone if is_complete else self.earlier().get(key)

    def _has_values(self, tombstone: Tombstone) -> bool:
        return self._partition_names <= (tombstone.partition or {}).keys()

    @cached_property
    def _partition_names(self) -> frozenset[str]:
        return partition_names(self.metadata)


def partition_names(metadata: Metadata) -> frozenset[str]:
    """Return the physical names of the partition columns: actions have the value of each."""
    physical = physical_partitions(metadata)
    return frozenset(physical.get(name, name) for name in metadata.partition_columns)
