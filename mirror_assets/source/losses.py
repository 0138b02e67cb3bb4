"""Losses of a source: errors of Spark, which prove nothing, and losses that its log and its store prove.

A rebuild drops a table, so it starts only with a proof. A file is lost when an exception names it, the log names it for
the versions that were read, and the store says that it does not exist.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from mirror_assets.errors import ErrorCode, MirrorError, RebuildError, RetryError, StopError, rebuild_step
from mirror_assets.source.actions import LiveFile, Tombstone
from mirror_assets.source.errors import LogGap, SourceUnavailable, SourceUnreadable
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_paths import TablePaths, is_absolute
from mirror_assets.source.table_properties import Retention


class DataFileMissing(RebuildError):
    """A file that the log names for a version to read is not in the store, for example after VACUUM."""

    code = ErrorCode.DATA_FILE_MISSING
    needs_reading = True

    def __init__(self, table: str, uri: str, file: str, version: int) -> None:
        self.table, self.uri, self.file, self.version = table, uri, file, version
        super().__init__(f"{table}: {file}, a file of version {version} of {uri}, was deleted.", _longer(table))


class FeedMissing(RebuildError):
    """The log says that the change data feed was off at a commit to read."""

    code = ErrorCode.FEED_DISABLED
    needs_reading = True

    def __init__(self, table: str, uri: str, version: int) -> None:
        self.table, self.uri, self.version = table, uri, version
        super().__init__(
            f"{table}: the change data feed of {uri} was off at version {version}, which has not landed.",
            f"{rebuild_step(table)}; leave delta.enableChangeDataFeed on.",
        )


class HistoryExpired(RebuildError):
    """Delta refuses to read a version that is older than the table's retention of deleted files."""

    code = ErrorCode.DATA_FILE_MISSING
    needs_reading = True

    def __init__(self, table: str, uri: str, version: int, age_hours: float) -> None:
        self.table, self.uri, self.version, self.age_hours = table, uri, version, age_hours
        super().__init__(
            f"{table}: Delta refuses to read version {version} of {uri}: it is {age_hours:,.1f} hours old, older than "
            "its delta.deletedFileRetentionDuration.",
            _longer(table),
        )


def _longer(table: str) -> str:
    """Return the next step for a file that the source should have retained longer."""
    return f"{rebuild_step(table)}; set delta.deletedFileRetentionDuration to more than the lag."


class SparkInterrupted(RetryError):
    """Spark lost one of its own files or a connection; the source is not affected."""

    code = ErrorCode.SPARK_INTERRUPTED

    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, why
        super().__init__(
            f"{place}: Spark was interrupted: {why}.",
            "run again; if the error persists, make sure that no program deletes files in spark.local.dir while Spark "
            "works.",
        )


class FileUnfound(SparkInterrupted):
    """A file was not found: one of the source, or one of Spark's own. `why` names the file."""


class SparkFailed(StopError):
    """Spark failed for another reason."""

    code = ErrorCode.SPARK_FAILED

    def __init__(
        self,
        place: str,
        why: str,
        what: str = "Spark failed",
        next_step: str = "correct the cause that the message names, or read Spark's log; then run again.",
    ) -> None:
        self.place, self.why = place, why
        super().__init__(f"{place}: {what}: {why}.", next_step)


class FileDamaged(SparkFailed):
    """A file exists, but its content is not what was written."""

    code = ErrorCode.DATA_FILE_UNREADABLE

    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            place,
            why,
            "a file can't be read as it was written",
            "restore the file that the message names, or write its rows again at the source and run `mirror-assets "
            "rebuild`; nothing of the slice was published.",
        )


class FeedRefused(SparkFailed):
    """Delta says that the change data feed was off."""


class HistoryRefused(SparkFailed):
    """Delta says that a version is too old to be read."""


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

    A loss is DataFileMissing, FeedMissing or HistoryExpired; SourceUnreadable, a file that exists but can't be read.
    Raises the log's errors, such as SourceNotDelta for a folder that is not mounted, but never LogGap, because a log
    that lacks commits proves nothing.
    """
    if isinstance(error, SourceUnreadable | SourceUnavailable):
        source.has_commit(read.last)  # if the store refuses this also, its reason is better than the one that Spark got
    if not isinstance(error, FileUnfound | SparkFailed):
        return error
    try:
        source.has_commit(read.last)  # raises SourceNotDelta if the source does not exist at all
        if isinstance(error, FileUnfound):
            return _file_loss(table, source, read, error.why) or error
        if isinstance(error, FeedRefused):
            commits = source.commits(read.first, read.last)
            off = [commit.version for commit in commits if commit.metadata and not commit.metadata.feed_enabled]
            if not off and not source.state(read.first).feed_enabled:
                off = [read.first]
            return FeedMissing(table, source.uri, off[0]) if off else error
        if isinstance(error, HistoryRefused):
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
        return DataFileMissing(table, source.uri, path, version)
    if state.hindrance is not None:
        return SourceUnreadable(source.uri, f"{path}, a file of version {version}: {state.hindrance}")
    return None


def _history_loss(table: str, source: DeltaLog, read: SourceRead) -> MirrorError | None:
    tip = source.state()
    times = source.times(tip)
    if read.first < times.first:
        return None
    age = time.time() - times.at(read.first) / 1000
    if age <= Retention.of(source.uri, tip.metadata).files.seconds:
        return None
    return HistoryExpired(table, source.uri, read.first, age / 3600)


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
