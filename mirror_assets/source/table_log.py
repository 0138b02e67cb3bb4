"""The log of a table as Direct Lake sees it: the files of every version that can still be put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

from mirror_assets.source.actions import Metadata
from mirror_assets.source.checkpoint import read_checkpoint
from mirror_assets.source.errors import LogGap, SourceNotDelta, SourceUnreadable
from mirror_assets.source.files import SourceFiles
from mirror_assets.source.listing import Checkpoint, LogFiles, Span, Step
from mirror_assets.source.paths import TablePaths, is_hidden
from mirror_assets.source.ranges import increasing
from mirror_assets.source.replay import Replay, require_reconciled, with_logical_names
from mirror_assets.source.table_actions import Actions, parse_actions
from mirror_assets.source.values import LiveFile, LoggedCommit, Snapshot, StoredFile, Tombstone

_LOG = "_delta_log"
# Commit files are small: waiting for a remote store is all there is to it.
_THREADS = 16

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


class TableLog:
    """The log of one table, listed once: what is committed later is not seen. No file of it is read twice.

    Raises SourceNotDelta, SourceUnreadable, SourceUnsupported, CatalogManaged, AddressOfDatabricks (SettingError),
    SourceUnavailable (RetryError) and LogGap (RebuildError).
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        """Name the table; `storage_options` are deltalake's. Nothing is read yet."""
        self.uri = uri
        self._options = dict(storage_options or {})
        self._commits: dict[int, Actions] = {}

    @cached_property
    def files(self) -> SourceFiles:
        """What opens the table's files."""
        return SourceFiles(self.uri, self._options)

    def newest(self) -> int:
        """The newest version."""
        newest = self._log.newest
        if newest is None:
            raise SourceNotDelta(self.uri)
        return newest

    def versions(self) -> tuple[int, ...]:
        """The versions that can be put together from checkpoints and commits, ascending."""
        return tuple(self._log.arrivals)

    def logged(self) -> tuple[int, ...]:
        """The versions whose commit is in the log, ascending, whether they can be put together or not."""
        return tuple(self._log.commits)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The table at the version, or at its newest one. Raises LogGap when that can't be put together any more."""
        if version is None or version == self.newest():
            return self._newest
        return next(self.snapshots([version]))

    def snapshots(self, versions: Iterable[int]) -> Iterator[Snapshot]:
        """The table at each of the versions, ascending, in one replay. Raises LogGap."""
        replay, have = Replay(self.uri), None
        for version in sorted(set(versions)):
            steps = self._log.steps(version, have)
            if steps is None or version < 0:
                raise LogGap(self.uri, self._log.gap(version))
            if steps and (isinstance(steps[0], Checkpoint) or steps[0].first == 0):
                replay = Replay(self.uri)
            for actions in self._each(self._actions, steps):
                replay.apply(actions)
            have = version
            yield replay.snapshot(version, self._dated(version, replay.metadata))

    def commits(self, first: int, last: int) -> tuple[LoggedCommit, ...]:
        """The commits [first, last]. Raises LogGap for the first that is missing."""
        versions = range(first, last + 1)
        missing = next((version for version in versions if version not in self._log.commits), None)
        if missing is not None:
            raise LogGap(self.uri, missing)
        read = self._each(self._actions, [self._log.commits[version] for version in versions])
        return tuple(self._commit(version, actions) for version, actions in zip(versions, read, strict=True))

    def time_ms(self, version: int) -> int:
        """When the version was made, in ms since 1970, by the clock that Delta goes by. Raises LogGap.

        That is its in-commit timestamp from where the table has them on, else when its commit file was written, at
        least 1 ms after the one before. A version of which only a checkpoint is left is as old as that.
        """
        return self._dated(version, self._newest.metadata)

    def listing(self, *, hidden: bool = False) -> tuple[StoredFile, ...]:
        """All files below the table's folder but the log's, in order of their paths; `hidden` ones only if asked for.

        Hidden are those that VACUUM never lists.
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
    def _log(self) -> LogFiles:
        return LogFiles.of(file for file in self.files.listed(_LOG) if file.path.count("/") == 1)

    @cached_property
    def _paths(self) -> TablePaths:
        return TablePaths.of(self.uri)

    @cached_property
    def _newest(self) -> Snapshot:
        return next(self.snapshots([self.newest()]))

    @cached_property
    def _written(self) -> dict[int, int]:
        """When the commit files were written, as Delta reads it."""
        commits = self._log.commits
        return dict(zip(commits, increasing([span.modified_ms for span in commits.values()]), strict=True))

    def _dated(self, version: int, metadata: Metadata) -> int:
        written = self._written.get(version)
        if written is None:
            if version not in self._log.arrivals:
                raise LogGap(self.uri, version)
            return self._log.arrivals[version].modified_ms
        since = metadata.in_commit_since
        told = None if since is None or version < since else self._actions(self._log.commits[version]).in_commit_ms
        return written if told is None else told

    def _commit(self, version: int, actions: Actions) -> LoggedCommit:
        return LoggedCommit(
            version=version,
            timestamp_ms=self.time_ms(version),
            operation=actions.operation,
            metrics=actions.metrics,
            added=tuple(with_logical_names(actions.added, self._newest.metadata)),
            removed=actions.removed,
            change_files=actions.change_files,
            data_change=actions.data_change,
            metadata=actions.metadata,
        )

    def _actions(self, step: Step) -> Actions:
        try:
            if isinstance(step, Checkpoint):
                return read_checkpoint(self.files, self._paths, step.parts, self._each)
            if step.first == step.last and step.first in self._commits:
                return self._commits[step.first]
            return self._read(step)
        except FileNotFoundError as error:
            raise LogGap(self.uri, step.version if isinstance(step, Checkpoint) else step.last) from error
        except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise SourceUnreadable(self.uri, f"{_name(step)} is not what Delta writes ({error!r})") from error

    def _read(self, span: Span) -> Actions:
        with self.files.open(span.path) as file:
            actions = parse_actions(file.read(), self._paths)
        if span.first == span.last:
            self._commits[span.first] = actions
        else:
            require_reconciled(actions)
        return actions

    def _each(self, make: Callable[[_Given], _Made], given: Sequence[_Given]) -> list[_Made]:
        """Side by side where the store is remote; on a disk there is nothing to wait for."""
        if self.files.is_local or len(given) < 2:
            return [make(one) for one in given]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(make, given))


def _name(step: Step) -> str:
    return ", ".join(step.parts) if isinstance(step, Checkpoint) else step.path


def files_by_path(log: TableLog, commits: Sequence[LoggedCommit], removed: Iterable[Tombstone]) -> dict[str, LiveFile]:
    """The files that consecutive commits add; and those before them, if one of the removed ones was among these.

    A file that was there before is missing when the version before the commits can't be put together any more.
    """
    added = {file.path: file for commit in commits for file in commit.added}
    if all(tomb.path in added for tomb in removed):
        return added
    try:
        return {file.path: file for file in log.snapshot(commits[0].version - 1).files} | added
    except LogGap:
        return added
