"""Losses of a source: the log and the store prove them, errors of Spark prove nothing.

A rebuild drops a table, so it starts only with a proof. A file is lost when an exception names it, the log names it for
the versions that were read, and the store says that it does not exist.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from mirror_assets.errors import MirrorError
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE, SourceUnreadable
from mirror_assets.source.actions import LiveFile, Tombstone
from mirror_assets.source.errors import (
    DATA_FILE_MISSING,
    FEED_MISSING,
    FEED_REFUSED,
    FILE_UNFOUND,
    HISTORY_EXPIRED,
    HISTORY_REFUSED,
    LogGap,
    SparkFailed,
    SparkInterrupted,
)
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_paths import TablePaths, is_absolute
from mirror_assets.source.table_properties import Retention

_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*")
# Characters that may surround a path in a message.
_BEFORE, _AFTER = r"(?:^|[\s'\"`:/])", r"(?=$|[\s'\"`)?,:;]|\.(?:\s|$))"


@dataclass(frozen=True)
class SourceRead:
    """A read of a source: the commits `first` to `last`, or the whole of `versions` if there are any."""

    first: int
    last: int
    versions: tuple[int, ...] = ()


def proved(table: str, source: DeltaLog, read: SourceRead, error: MirrorError) -> MirrorError:
    """Return the loss that caused an error of Spark, if log and store prove it; else a better error, or the same.

    A loss is a SourceLoss; SourceUnreadable, a file that exists but can't be read.
    Raises the log's errors, such as SourceNotDelta for a folder that is not mounted, but never LogGap, because a log
    that lacks commits proves nothing.
    """
    if isinstance(error, SourceUnreadable | SOURCE_UNAVAILABLE.error):
        source.has_commit(read.last)  # if the store refuses this also, its reason is better than the one that Spark got
    if not isinstance(error, FILE_UNFOUND.error | SparkFailed):
        return error
    try:
        source.has_commit(read.last)  # raises SourceNotDelta if the source does not exist at all
        if isinstance(error, SparkInterrupted):
            return _file_loss(table, source, read, error.why) or error
        if isinstance(error, FEED_REFUSED.error):
            commits = source.commits(read.first, read.last)
            off = [commit.version for commit in commits if commit.metadata and not commit.metadata.feed_enabled]
            if not off and not source.state(read.first).feed_enabled:
                off = [read.first]
            return FEED_MISSING(table=table, uri=source.uri, version=off[0]) if off else error
        if isinstance(error, HISTORY_REFUSED.error):
            return _history_loss(table, source, read) or error
    except LogGap:
        pass
    return error


def _file_loss(table: str, source: DeltaLog, read: SourceRead, message: str) -> MirrorError | None:
    log = DeltaLog(source.uri, source.access)
    texts = f"{message}\n{unquote(message)}"
    found = next(((path, version) for path, version in _files(log, read) if _names(texts, log.uri, path)), None)
    if found is None:
        return None
    path, version = found
    state = log.files.state_of(path)
    if state.is_gone:
        return DATA_FILE_MISSING(table=table, uri=source.uri, file=path, version=version)
    if state.hindrance is not None:
        return SOURCE_UNREADABLE(uri=source.uri, why=f"{path}, a file of version {version}: {state.hindrance}")
    return None


def _history_loss(table: str, source: DeltaLog, read: SourceRead) -> MirrorError | None:
    tip = source.state()
    times = source.times(tip)
    if read.first < times.first:
        return None
    age = time.time() - times.at(read.first) / 1000
    if age <= Retention.of(source.uri, tip.metadata).files.seconds:
        return None
    return HISTORY_EXPIRED(table=table, uri=source.uri, version=read.first, age_hours=age / 3600)


def _files(log: DeltaLog, read: SourceRead) -> Iterator[tuple[str, int]]:
    """Yield path and version of the files, and of their deletion vectors, that the log names for the read."""
    for version in read.versions:
        for live in log.snapshot(version).files:
            yield from _with_vector(live, version)
    if read.versions:
        return
    for commit in log.logged_commits(read.first, read.last):
        yield from ((file.path, commit.version) for file in commit.actions.change_files)
        files: tuple[LiveFile | Tombstone, ...] = (*commit.actions.added, *commit.actions.removed)
        for file in files:
            yield from _with_vector(file, commit.version)


def _with_vector(file: LiveFile | Tombstone, version: int) -> Iterator[tuple[str, int]]:
    yield file.path, version
    if file.vector is not None and file.vector.path is not None:
        yield file.vector.path, version


def _names(message: str, uri: str, path: str) -> bool:
    """Whether the message names the file: by its place in the table's folder, however the folder's store is spelled."""
    place = path if is_absolute(path) else TablePaths.of(uri).root + path
    below = _AUTHORITY.sub("", place).lstrip("/")
    return re.search(_BEFORE + re.escape(below) + _AFTER, message) is not None
