"""What a source has lost: errors of Spark, which prove nothing, and losses that its log and its store prove.

A rebuild drops a table, so nothing but a proof may start one. A file is lost when an exception names it, the log names
it for the versions that were read, and the store says that it is not there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from mirror_assets.errors import ErrorCode, MirrorError, RebuildError, RetryError, StopError
from mirror_assets.source.actions import LiveFile, Tombstone
from mirror_assets.source.errors import LogGap, SourceUnavailable, SourceUnreadable
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_paths import TablePaths, is_absolute
from mirror_assets.source.table_properties import Retention

_KEEP = "keep delta.deletedFileRetentionDuration longer than the lag."


class DataFileMissing(RebuildError):
    """A file that the log names for a version to read is not in the store: VACUUM or somebody deleted it."""

    code = ErrorCode.DATA_FILE_MISSING
    needs_reading = True

    def __init__(self, table: str, uri: str, file: str, version: int) -> None:
        self.table, self.uri, self.file, self.version = table, uri, file, version
        super().__init__(
            f"{table}: {file}, which version {version} of {uri} is read from, is gone.",
            f"run `mirror-assets rebuild {table}`; {_KEEP}",
        )


class FeedMissing(RebuildError):
    """The log says that the change data feed was off at a commit that is to be read."""

    code = ErrorCode.FEED_DISABLED
    needs_reading = True

    def __init__(self, table: str, uri: str, version: int) -> None:
        self.table, self.uri, self.version = table, uri, version
        super().__init__(
            f"{table}: the change data feed of {uri} was off at version {version}, which has not landed.",
            f"run `mirror-assets rebuild {table}`; keep delta.enableChangeDataFeed on.",
        )


class HistoryExpired(RebuildError):
    """Delta refuses to read a version that is older than the time for which the table keeps deleted files."""

    code = ErrorCode.DATA_FILE_MISSING
    needs_reading = True

    def __init__(self, table: str, uri: str, version: int, age_hours: float) -> None:
        self.table, self.uri, self.version, self.age_hours = table, uri, version, age_hours
        super().__init__(
            f"{table}: Delta refuses to read version {version} of {uri}: it is {age_hours:,.1f} hours old, older than "
            "its delta.deletedFileRetentionDuration.",
            f"run `mirror-assets rebuild {table}`; {_KEEP}",
        )


class SparkInterrupted(RetryError):
    """Spark lost one of its own files or a connection; the source is not affected."""

    code = ErrorCode.SPARK_INTERRUPTED

    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, why
        super().__init__(
            f"{place}: Spark was interrupted: {why}.",
            "run again; if the error persists, make sure that nothing empties Spark's folders (spark.local.dir) "
            "while it works.",
        )


class FileUnfound(SparkInterrupted):
    """Spark did not find a file: either one of the source, or one of its own. `why` names the file."""


class SparkFailed(StopError):
    """Spark failed for another reason."""

    code = ErrorCode.SPARK_FAILED

    def __init__(
        self,
        place: str,
        why: str,
        what: str = "Spark failed",
        next_step: str = "fix what it names, or read Spark's own messages; then run again.",
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
            "restore the file that it names, or write its rows again at the source and run `mirror-assets rebuild`; "
            "nothing of the slice was published.",
        )


class FeedRefused(SparkFailed):
    """Delta says that the change data feed was off."""


class HistoryRefused(SparkFailed):
    """Delta says that a version is too old to be read."""


_HOUR = 3600.0
_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*")
# What may stand before and behind a path in a message.
_BEFORE, _BEHIND = r"(?:^|[\s'\"`:/])", r"(?=$|[\s'\"`)?,:;]|\.(?:\s|$))"


@dataclass(frozen=True)
class SourceRead:
    """What is read of a source: the commits `first` to `last`, or the whole of `versions` if there are any."""

    first: int
    last: int
    versions: tuple[int, ...] = ()


@dataclass(frozen=True)
class NamedFile:
    """A file, and the version or commit for which the log names it; the path is as in `LiveFile`."""

    path: str
    version: int


def proved(table: str, source: DeltaLog, read: SourceRead, error: MirrorError) -> MirrorError:
    """Return the loss behind an error of Spark, if log and store prove it; else a better explanation, or the error.

    A loss is DataFileMissing, FeedMissing or HistoryExpired; SourceUnreadable, a file that is there but can't be read.
    Raises what the log raises, such as SourceNotDelta for a folder that is not mounted any more, but never LogGap: what
    can't be told proves nothing.
    """
    if isinstance(error, SourceUnreadable | SourceUnavailable):
        source.has_commit(read.last)  # where the store refuses this, too, it says more than it does to Spark
    if not isinstance(error, FileUnfound | SparkFailed):
        return error
    try:
        return _loss(table, source, read, error) or error
    except LogGap:
        return error


def named_file(log: DeltaLog, read: SourceRead, told: str) -> NamedFile | None:
    """Return the file that the message names, if it belongs to what is read. Raises what the log raises."""
    message = f"{told}\n{unquote(told)}"
    return next((named for named in _named(log, read) if _is_in(log.uri, named.path, message)), None)


def _loss(table: str, source: DeltaLog, read: SourceRead, error: FileUnfound | SparkFailed) -> MirrorError | None:
    source.has_commit(read.last)  # raises SourceNotDelta for a source that is not there at all
    if isinstance(error, FileUnfound):
        return _file_loss(table, source, read, error)
    if isinstance(error, FeedRefused):
        return _feed_loss(table, source, read)
    return _history_loss(table, source, read) if isinstance(error, HistoryRefused) else None


def _file_loss(table: str, source: DeltaLog, read: SourceRead, error: FileUnfound) -> MirrorError | None:
    log = DeltaLog(source.uri, source.access)
    named = named_file(log, read, error.why)
    if named is None:
        return None
    state = log.files.state_of(named.path)
    if state.is_gone:
        return DataFileMissing(table, source.uri, named.path, named.version)
    if state.hindrance is not None:
        return SourceUnreadable(source.uri, f"{named.path}, a file of version {named.version}: {state.hindrance}")
    return None


def _feed_loss(table: str, source: DeltaLog, read: SourceRead) -> MirrorError | None:
    commits = source.commits(read.first, read.last)
    off = [commit.version for commit in commits if commit.metadata and not commit.metadata.feed_enabled]
    if not off and not source.state(read.first).feed_enabled:
        off = [read.first]
    return FeedMissing(table, source.uri, off[0]) if off else None


def _history_loss(table: str, source: DeltaLog, read: SourceRead) -> MirrorError | None:
    tip = source.state()
    times = source.times(tip)
    if read.first < times.first:
        return None
    age = time.time() - times.at(read.first) / 1000
    if age <= Retention.of(source.uri, tip.metadata).files.seconds:
        return None
    return HistoryExpired(table, source.uri, read.first, age / _HOUR)


def _named(log: DeltaLog, read: SourceRead) -> Iterator[NamedFile]:
    """Yield the files that the log names for what is read, and the files of their deletion vectors."""
    if read.versions:
        for version in read.versions:
            for live in log.snapshot(version).files:
                yield from _with_vector(live, version)
        return
    for commit in log.logged_commits(read.first, read.last):
        yield from (NamedFile(file.path, commit.version) for file in commit.actions.change_files)
        files: tuple[LiveFile | Tombstone, ...] = (*commit.actions.added, *commit.actions.removed)
        for file in files:
            yield from _with_vector(file, commit.version)


def _with_vector(file: LiveFile | Tombstone, version: int) -> Iterator[NamedFile]:
    yield NamedFile(file.path, version)
    if file.vector is not None and file.vector.path is not None:
        yield NamedFile(file.vector.path, version)


def _is_in(uri: str, path: str, message: str) -> bool:
    """Whether the message names the file: by its place in the table's folder, however the folder's store is spelled."""
    place = path if is_absolute(path) else TablePaths.of(uri).root + path
    below = _AUTHORITY.sub("", place).lstrip("/")
    return re.search(_BEFORE + re.escape(below) + _BEHIND, message) is not None
