"""Whether a source has lost what Spark could not read: proved by its log and its store, or not at all.

A rebuild drops a table, so nothing but a proof may start one. A file is lost when an exception names it, the log names
it for what was being read, and the store says that it is not there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from urllib.parse import unquote

from mirror_assets.delta.errors import LogGap, SourceUnreadable
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.losses import (
    DataFileMissing,
    FeedMissing,
    FeedRefused,
    FileUnfound,
    HistoryExpired,
    HistoryRefused,
    SparkFailed,
)
from mirror_assets.delta.retention import Retention
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.paths import TablePaths, is_absolute
from mirror_assets.direct_lake.table.values import LiveFile, Tombstone
from mirror_assets.errors import MirrorError

_HOUR = 3600.0
_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*")
# What may stand before and behind a path in a message.
_BEFORE, _BEHIND = r"(?:^|[\s'\"`:/])", r"(?=$|[\s'\"`)?,:;]|\.(?:\s|$))"


@dataclass(frozen=True)
class SourceRead:
    """What of a source is read: the commits `first` to `last`, or else whole versions of it."""

    first: int
    last: int
    versions: tuple[int, ...] = ()


@dataclass(frozen=True)
class NamedFile:
    """A file, and the version or commit for which the log names it; the path is as in `LiveFile`."""

    path: str
    version: int


def proved(table: str, source: SourceLog, read: SourceRead, error: MirrorError) -> MirrorError:
    """The loss that the error speaks of, if log and store prove it; else what they say, or the error itself.

    A loss is DataFileMissing, FeedMissing or HistoryExpired; SourceUnreadable, a file that is there but can't be read.
    Raises what the log raises, such as SourceNotDelta for a folder that is not mounted any more, but never LogGap: what
    can't be told proves nothing.
    """
    if not isinstance(error, FileUnfound | SparkFailed):
        return error
    try:
        return _loss(table, source, read, error) or error
    except LogGap:
        return error


def named_file(log: TableLog, read: SourceRead, told: str) -> NamedFile | None:
    """The file of what is read that the message names, or None. Raises what the log raises."""
    message = f"{told}\n{unquote(told)}"
    return next((named for named in _named(log, read) if _is_in(log.uri, named.path, message)), None)


def _loss(table: str, source: SourceLog, read: SourceRead, error: FileUnfound | SparkFailed) -> MirrorError | None:
    source.has_commit(read.last)  # a source that is not there at all is told as that
    if isinstance(error, FileUnfound):
        return _file_loss(table, source, read, error)
    if isinstance(error, FeedRefused):
        return _feed_loss(table, source, read)
    return _history_loss(table, source, read) if isinstance(error, HistoryRefused) else None


def _file_loss(table: str, source: SourceLog, read: SourceRead, error: FileUnfound) -> MirrorError | None:
    log = TableLog(source.uri, source.storage_options)
    named = named_file(log, read, error.told)
    if named is None:
        return None
    state = log.files.state_of(named.path)
    if state.is_gone:
        return DataFileMissing(table, source.uri, named.path, named.version)
    if state.hindrance is not None:
        return SourceUnreadable(source.uri, f"{named.path}, a file of version {named.version}: {state.hindrance}")
    return None


def _feed_loss(table: str, source: SourceLog, read: SourceRead) -> MirrorError | None:
    commits = source.commits(read.first, read.last)
    off = [commit.version for commit in commits if commit.metadata and not commit.metadata.feed_enabled]
    if not off and not source.state(read.first).feed_enabled:
        off = [read.first]
    return FeedMissing(table, source.uri, off[0]) if off else None


def _history_loss(table: str, source: SourceLog, read: SourceRead) -> MirrorError | None:
    tip = source.state()
    times = source.times(tip)
    if read.first < times.first:
        return None
    age = time.time() - times.at(read.first) / 1000
    if age <= Retention.of(source.uri, tip.metadata).files.seconds:
        return None
    return HistoryExpired(table, source.uri, read.first, age / _HOUR)


def _named(log: TableLog, read: SourceRead) -> Iterator[NamedFile]:
    """The files that the log names for what is read, and those of their deletion vectors."""
    for version in read.versions:
        for file in log.snapshot(version).files:
            yield from _with_vector(file, version)
    if read.versions:
        return
    for commit in log.commits(read.first, read.last):
        yield from (NamedFile(path, commit.version) for path in commit.change_files)
        yield from chain.from_iterable(_with_vector(file, commit.version) for file in commit.added)
        yield from chain.from_iterable(_with_vector(file, commit.version) for file in commit.removed)


def _with_vector(file: LiveFile | Tombstone, version: int) -> Iterator[NamedFile]:
    yield NamedFile(file.path, version)
    if file.vector is not None and file.vector.path is not None:
        yield NamedFile(file.vector.path, version)


def _is_in(uri: str, path: str, message: str) -> bool:
    """Whether the message names the file: by its place in the table's folder, however the folder's store is spelled."""
    place = path if is_absolute(path) else TablePaths.of(uri).root + path
    below = _AUTHORITY.sub("", place).lstrip("/")
    return re.search(_BEFORE + re.escape(below) + _BEHIND, message) is not None
