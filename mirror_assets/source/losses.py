"""Losses of a source: the log and the store prove them, errors of Spark prove nothing.

A rebuild drops a table, so it starts only with a proof. A file is lost when an exception names it, the log names it for
the versions that were read, and the store says that it does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from mirror_assets.errors import MirrorError
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE, SourceUnreadable
from mirror_assets.source.actions import LiveFile, Tombstone
from mirror_assets.source.errors import DATA_FILE_MISSING, FILE_UNFOUND, LogGap, SparkFailed
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.log_paths import TablePaths, is_absolute

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
    if isinstance(error, SourceUnreadable | SparkFailed | FILE_UNFOUND.error | SOURCE_UNAVAILABLE.error):
        # Raises SourceNotDelta if the source does not exist at all. If the store refuses this also, its reason is
        # better than the one that Spark got.
        source.has_commit(read.last)
    if not isinstance(error, FILE_UNFOUND.error):
        return error
    log, message = source.reopened(), error.facts["why"]
    texts = f"{message}\n{unquote(message)}"
    try:
        found = next((one for one in _files(log, read) if _names(texts, log.uri, one[0])), None)
    except LogGap:
        return error
    if found is None:
        return error
    path, version = found
    state = log.files.presence_of(path)
    if state.is_gone:
        return DATA_FILE_MISSING(table=table, uri=source.uri, file=path, version=version)
    if state.hindrance is not None:
        return SOURCE_UNREADABLE(uri=source.uri, why=f"{path}, a file of version {version}: {state.hindrance}")
    return error


def _files(log: DeltaLog, read: SourceRead) -> Iterator[tuple[str, int]]:
    """Yield path and version of the files, and of their deletion vectors, that the log names for the read."""
    for version in read.versions:
        for live in log.snapshot(version).files:
            yield from _with_vector(live, version)
    if read.versions:
        return
    for version, actions in log.read_actions(read.first, read.last):
        yield from ((file.path, version) for file in actions.change_files)
        files: tuple[LiveFile | Tombstone, ...] = (*actions.added, *actions.removed)
        for file in files:
            yield from _with_vector(file, version)


def _with_vector(file: LiveFile | Tombstone, version: int) -> Iterator[tuple[str, int]]:
    yield file.path, version
    if file.vector is not None and file.vector.path is not None:
        yield file.vector.path, version


def _names(message: str, uri: str, path: str) -> bool:
    """Whether the message names the file: by its place in the table's folder, however the folder's store is spelled."""
    place = path if is_absolute(path) else TablePaths.of(uri).root + path
    below = _AUTHORITY.sub("", place).lstrip("/")
    return re.search(_BEFORE + re.escape(below) + _AFTER, message) is not None
