"""Reads single files of one Delta log, for every view of it: lists the folder, parses commits and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

from mirror_assets.errors import MirrorError
from mirror_assets.source.access import Access, PlainAccess
from mirror_assets.source.actions import Actions, CommitInfo
from mirror_assets.source.errors import LogGap, SourceNotDelta, SourceUnavailable, SourceUnreadable
from mirror_assets.source.log_checkpoint import read_checkpoint
from mirror_assets.source.log_listing import Checkpoint, Span
from mirror_assets.source.log_paths import TablePaths
from mirror_assets.source.parsing import parse_actions, parse_info
from mirror_assets.source.replay import require_reconciled
from mirror_assets.source.source_files import SourceFiles, commit_path

# Files of a log are small: reading them remotely is waiting for them.
_THREADS = 16

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


class LogReader:
    """Reads files of the log of one table; keeps nothing. Threads may share it.

    Raises SourceNotDelta, SourceUnreadable, AddressOfDatabricks (SettingError), SourceUnavailable (RetryError), and
    LogGap (RebuildError) only for a file that a store which can be read does not have.
    """

    def __init__(self, uri: str, access: Access | None = None) -> None:
        """Name the table, and the way to it. Nothing is read yet."""
        self.uri, self.access = uri, access or PlainAccess(uri)

    @cached_property
    def files(self) -> SourceFiles:
        """Opens the table's files."""
        return SourceFiles(self.uri, self.access)

    @cached_property
    def paths(self) -> TablePaths:
        """Decodes the paths of the log."""
        return TablePaths.of(self.uri)

    def commit(self, version: int) -> Actions:
        """Read the actions of a commit."""
        return self._parsed(self._commit_data(version), f"commit {version}")

    def commit_info(self, version: int) -> CommitInfo:
        """Read the commitInfo of a commit alone."""
        return parse_info(self._commit_data(version))

    def has_commit(self, version: int) -> bool:
        """Whether the commit is in the log."""
        try:
            self._commit_data(version)
        except LogGap:
            return False
        return True

    def compacted(self, span: Span) -> Actions:
        """Read the actions of compacted commits."""
        try:
            with self.files.open(span.path) as file:
                actions = self._parsed(file.read(), span.path)
        except FileNotFoundError as error:
            raise LogGap(self.uri, span.last) from error
        try:
            require_reconciled(actions)
        except ValueError as error:
            raise self._not_of_delta(span.path, error) from error
        return actions

    def checkpoint(self, checkpoint: Checkpoint) -> Actions:
        """Read the actions of a checkpoint and its sidecars."""
        try:
            return read_checkpoint(self.files, self.paths, checkpoint.parts, self.each)
        except FileNotFoundError as error:
            raise LogGap(self.uri, checkpoint.version) from error
        except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise self._not_of_delta(", ".join(checkpoint.parts), error) from error

    def each(self, make: Callable[[_Given], _Made], given: Sequence[_Given]) -> list[_Made]:
        """Apply a function that reads files: side by side where the store is remote.

        On a disk there is nothing to wait for, and threads take four times as long.
        """
        if self.files.is_local or len(given) < 2:
            return [make(one) for one in given]
        with ThreadPoolExecutor(_THREADS) as pool:
            try:
                return list(pool.map(make, given))
            except MirrorError:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def why_absent(self, version: int) -> MirrorError:
        """Return what it means that a commit was not found: only a log that is there can lack one."""
        if not self.files.log().files:
            return SourceNotDelta(self.uri)
        state = self.files.state_of(commit_path(version))
        if state.is_gone:
            return LogGap(self.uri, version)
        if state.hindrance is not None:
            return SourceUnreadable(self.uri, state.hindrance)
        return SourceUnavailable(self.uri, f"commit {version} is in its log, and could not be read a moment before")

    def _commit_data(self, version: int) -> bytes:
        data = self.files.commit(version)
        if data is None:
            raise self.why_absent(version)
        return data

    def _parsed(self, data: bytes, name: str) -> Actions:
        try:
            return parse_actions(data, self.paths)
        except (ValueError, KeyError, TypeError) as error:
            raise self._not_of_delta(name, error) from error

    def _not_of_delta(self, name: str, error: Exception) -> SourceUnreadable:
        return SourceUnreadable(self.uri, f"{name} is not what Delta writes ({error!r})")
