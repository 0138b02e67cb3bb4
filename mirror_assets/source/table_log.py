"""Every version of a table that its Delta log can still put together: files, commits and times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from mirror_assets.source.access import Access
from mirror_assets.source.actions import Actions, LiveFile, Metadata, Tombstone
from mirror_assets.source.errors import LogGap, SourceNotDelta
from mirror_assets.source.log_listing import Checkpoint, LogListing, Step
from mirror_assets.source.log_paths import is_hidden
from mirror_assets.source.log_reader import LogReader
from mirror_assets.source.ranges import increasing
from mirror_assets.source.replay import Replay, Snapshot, with_logical_names
from mirror_assets.source.source_files import SourceFiles, StoredFile

_LOG = "_delta_log"


@dataclass(frozen=True)
class LoggedCommit:
    """A commit with all its files, also those that change no data; `data_change` is whether any does.

    `change_files` are the paths of its change data feed; `partition` of the files is by the newest names of the
    columns; `timestamp_ms` is by Delta's clock, as `TableLog.time_ms`.
    """

    version: int
    timestamp_ms: int
    operation: str
    metrics: Mapping[str, int]
    added: tuple[LiveFile, ...]
    removed: tuple[Tombstone, ...]
    change_files: tuple[str, ...]
    data_change: bool
    metadata: Metadata | None


class TableLog:
    """The log of one table, listed once: what is committed later is not seen. No commit is read twice.

    Raises SourceNotDelta, SourceUnreadable, SourceUnsupported, CatalogManaged, AddressOfDatabricks (SettingError),
    SourceUnavailable (RetryError) and LogGap (RebuildError).
    """

    def __init__(self, uri: str, access: Access | None = None) -> None:
        """Name the table, and the way to it. Nothing is read yet."""
        self.uri = uri
        self._reader = LogReader(uri, access)
        self._commits: dict[int, Actions] = {}

    @property
    def files(self) -> SourceFiles:
        """Opens the table's files."""
        return self._reader.files

    def newest(self) -> int:
        """Return the newest version."""
        newest = self._log.newest
        if newest is None:
            raise SourceNotDelta(self.uri)
        return newest

    def versions(self) -> tuple[int, ...]:
        """Return the versions that can be put together from checkpoints and commits, ascending."""
        return tuple(self._log.arrivals)

    def logged(self) -> tuple[int, ...]:
        """Return the versions whose commit is in the log, ascending, whether they can be put together or not."""
        return tuple(self._log.commits)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return the table at the version, or at its newest one. Raises LogGap when it can't be put together."""
        if version is None or version == self.newest():
            return self._newest
        return next(self.snapshots([version]))

    def snapshots(self, versions: Iterable[int]) -> Iterator[Snapshot]:
        """Yield the table at each of the versions, ascending, in one replay. Raises LogGap."""
        replay, have = Replay(self.uri), None
        for version in sorted(set(versions)):
            steps = self._log.steps(version, have)
            if steps is None or version < 0:
                raise LogGap(self.uri, self._log.gap(version))
            if steps and (isinstance(steps[0], Checkpoint) or steps[0].first == 0):
                replay = Replay(self.uri)
            for actions in self._reader.each(self._actions, steps):
                replay.apply(actions)
            have = version
            yield replay.snapshot(version, self._dated(version, replay.metadata))

    def commits(self, first: int, last: int) -> tuple[LoggedCommit, ...]:
        """Return the commits [first, last]. Raises LogGap for the first that is missing."""
        versions = range(first, last + 1)
        missing = next((version for version in versions if version not in self._log.commits), None)
        if missing is not None:
            raise LogGap(self.uri, missing)
        return tuple(map(self._logged, versions, self._reader.each(self._commit, versions)))

    def time_ms(self, version: int) -> int:
        """Return when the version was made, in ms since 1970, by Delta's clock (see CommitTimes). Raises LogGap.

        A version of which only a checkpoint is left is as old as that.
        """
        return self._dated(version, self._newest.metadata)

    def listing(self, *, hidden: bool = False) -> tuple[StoredFile, ...]:
        """List all files below the table's folder but the log's, in order of their paths.

        Files that VACUUM never lists are left out unless `hidden`.
        """
        if hidden:
            return self._listed
        metadata = self._newest.metadata
        return tuple(file for file in self._listed if not is_hidden(file.path, metadata))

    @cached_property
    def _listed(self) -> tuple[StoredFile, ...]:
        found = (file for file in self.files.listed() if not file.path.startswith(f"{_LOG}/"))
        return tuple(sorted(found, key=lambda file: file.path))

    @cached_property
    def _log(self) -> LogListing:
        return self.files.log()

    @cached_property
    def _newest(self) -> Snapshot:
        return next(self.snapshots([self.newest()]))

    @cached_property
    def _written(self) -> dict[int, int]:
        """When the commit files were written, as Delta reads it."""
        written = self._log.written
        return dict(zip(written, increasing(list(written.values())), strict=True))

    def _dated(self, version: int, metadata: Metadata) -> int:
        written = self._written.get(version)
        if written is None:
            if version not in self._log.arrivals:
                raise LogGap(self.uri, version)
            return self._log.arrivals[version].modified_ms
        since = metadata.in_commit_since
        in_commit = None if since is None or version < since else self._commit(version).info.in_commit_ms
        return written if in_commit is None else in_commit

    def _logged(self, version: int, actions: Actions) -> LoggedCommit:
        return LoggedCommit(
            version=version,
            timestamp_ms=self.time_ms(version),
            operation=actions.operation,
            metrics=actions.metrics,
            added=tuple(with_logical_names(actions.added, self._newest.metadata)),
            removed=actions.removed,
            change_files=tuple(file.path for file in actions.change_files),
            data_change=bool(actions.data_added or actions.data_removed),
            metadata=actions.metadata,
        )

    def _actions(self, step: Step) -> Actions:
        if isinstance(step, Checkpoint):
            return self._reader.checkpoint(step)
        is_commit = step == self._log.commits.get(step.first)
        return self._commit(step.first) if is_commit else self._reader.compacted(step)

    def _commit(self, version: int) -> Actions:
        if version not in self._commits:
            self._commits[version] = self._reader.commit(version)
        return self._commits[version]
