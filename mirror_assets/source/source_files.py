"""The files of a source by their path in the table: opens, lists and finds them with the source's credentials."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import NativeFile
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem, PyFileSystem, SubTreeFileSystem

from mirror_assets.lakes.access import Access, CatalogCommits
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE
from mirror_assets.lakes.object_store import SCHEMES as OBJECT_STORES
from mirror_assets.lakes.object_store import ObjectStoreFiles
from mirror_assets.source.actions import LoggedFile
from mirror_assets.source.log_listing import LogListing, TipMark, written_ms
from mirror_assets.source.log_paths import TablePaths, has_scheme, is_absolute, local_folder
from mirror_assets.source.read_errors import translated

_LOG, _STAGED = "_delta_log", "_staged_commits"
# Files of a log are small, so reading them remotely is mostly latency.
_THREADS = 16
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_PLACE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/]*)/(.*)", re.DOTALL)


def commit_path(version: int) -> str:
    """Return the path of the version's commit file, in the table's folder."""
    return f"{_LOG}/{version:020d}.json"


@dataclass(frozen=True)
class VersionFiles:
    """Decides which file is a version's commit, and which version is the newest: by the log alone, or by a catalog."""

    commits: CatalogCommits | None = None

    def path(self, version: int) -> str:
        """Return the path of the version's commit file, in the table's folder."""
        staged = self.commits.staged.get(version) if self.commits else None
        return commit_path(version) if staged is None else f"{_LOG}/{_STAGED}/{staged.name}"

    def published(self, path: str) -> str | None:
        """Return the path at which a staged commit may be published since; None for another file.

        A catalog may delete a staged file once its commit is published.
        """
        folder, _, name = path.rpartition("/")
        if self.commits is None or folder != f"{_LOG}/{_STAGED}":
            return None
        return next((commit_path(at) for at, staged in self.commits.staged.items() if staged.name == name), None)

    def listing(self, files: list[FileInfo]) -> LogListing:
        """Return the listing of a log's folder, whose files are given, with the catalog's commits."""
        if self.commits is None:
            return LogListing(files)
        staged = {
            version: FileInfo(self.path(version), FileType.File, size=one.bytes, mtime_ns=one.modified_ms * 1_000_000)
            for version, one in self.commits.staged.items()
        }
        return LogListing(files, staged).up_to(self.commits.latest)


@dataclass(frozen=True)
class FilePresence:
    """`is_gone`: the store says that no such file exists. `hindrance`: why it can't be read or searched for, if so."""

    is_gone: bool = False
    hindrance: str | None = None


def local_presence(path: str, root: Path) -> FilePresence:  # noqa: PLR0911 each finding is one line
    """Return the state of a file of this machine at `path` below the folder `root`.

    A file counts as deleted if an existing folder does not have it. A missing folder, such as a disk that is not
    mounted, one that may not be searched, and a broken link say nothing about the file.
    """
    if not root.is_dir():
        return FilePresence(hindrance=f"the folder {root} is not there")
    place = root
    for name in Path(path).parts:
        place = place / name
        try:
            mode = os.lstat(place).st_mode
        except FileNotFoundError:
            return FilePresence(is_gone=True)
        except OSError as error:
            return FilePresence(hindrance=f"{place}: {error.strerror}")
        if stat.S_ISLNK(mode) and not place.exists():
            return FilePresence(hindrance=f"{place} is a link to {place.readlink()}, which is not there")
    if not place.is_file():
        return FilePresence(hindrance=f"{place} is a folder")
    try:
        place.open("rb").close()
    except OSError as error:
        return FilePresence(hindrance=f"{place}: {error.strerror}")
    return FilePresence()


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file found by listing; its path is below the table's folder."""

    path: str
    bytes: int
    modified_ms: int


class SourceFiles:
    """The files of one source; threads may share it. Its errors are those of `translated`."""

    def __init__(self, uri: str, access: Access) -> None:
        """Name the table, and how to access it; nothing is read yet."""
        self._uri, self._access, self._commits = uri, access, VersionFiles()
        self._opened: tuple[Mapping[str, str], FileSystem] | None = None

    def by(self, commits: CatalogCommits | None) -> SourceFiles:
        """Return the same files, of which the catalog's commits count; None: those of the log."""
        made = SourceFiles(self._uri, self._access)
        made._commits, made._opened = VersionFiles(commits), self._opened
        return made

    @cached_property
    def paths(self) -> TablePaths:
        """Decodes the paths of the log."""
        return TablePaths.of(self._uri)

    @property
    def is_local(self) -> bool:
        """Whether they are on a disk of this machine, and named by its path."""
        return not has_scheme(self._uri)

    def each(self, read: Callable[[_Given], _Made], given: Sequence[_Given]) -> list[_Made]:
        """Read several files, concurrently from a remote store; on a disk, threads take four times as long.

        The first error cancels what has not begun.
        """
        if self.is_local or len(given) < 2:
            return [read(one) for one in given]
        with ThreadPoolExecutor(_THREADS) as pool:
            try:
                return list(pool.map(read, given))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    @property
    def _system(self) -> FileSystem:
        """The table's folder; opened again when the credentials change.

        On a disk, Arrow's own file system is ten times as fast as deltalake's, which goes through Python.
        """
        options = {} if self.is_local else self._access.storage_options()
        if self._opened is None or self._opened[0] != options:
            if self.is_local:
                system: FileSystem = SubTreeFileSystem(str(local_folder(self._uri)), LocalFileSystem())
            else:
                system = remote_files(self._access.uri, options)
            self._opened = (options, system)
        return self._opened[1]

    def listed(self) -> tuple[StoredFile, ...]:
        """List all files below the table's folder, in no order; none if the folder does not exist."""
        with translated(self._uri):
            found = self._system.get_file_info(FileSelector("", allow_not_found=True, recursive=True))
        return tuple(
            StoredFile(info.path, info.size or 0, written_ms(info)) for info in found if info.type is FileType.File
        )

    def open(self, path: str) -> NativeFile:
        """Open a file for random reading: one of the table's folder, or one elsewhere by its absolute URI.

        The caller closes it. Raises FileNotFoundError when it does not exist.
        """
        published = self._commits.published(path)
        if published is None:
            return self._open(path)
        try:
            return self._open(path)
        except FileNotFoundError:
            return self._open(published)

    def _open(self, path: str) -> NativeFile:
        with translated(self._uri, self._listed_log):
            place = _PLACE.fullmatch(path)
            if place is None:
                return self._system.open_input_file(path)
            return self._elsewhere(place[1]).open_input_file(place[2])

    def _elsewhere(self, root: str) -> FileSystem:
        """Open the file system of a shallow clone's files."""
        if root.startswith("file:"):
            return SubTreeFileSystem("/", LocalFileSystem())
        access = self._access.elsewhere(f"{root}/")
        return _shared(access.uri, tuple(access.storage_options().items()))

    def log(self) -> LogListing:
        """List the log's folder, also files in it that can't be opened; nothing if the folder does not exist.

        Raises SOURCE_UNAVAILABLE if the log lacks the newest commit that its catalog reports as published.
        """
        with translated(self._uri):
            found = self._commits.listing(self._listed_log())
        commits = self._commits.commits
        if commits is not None and commits.published >= 0 and not found.reaches(commits.published):
            raise SOURCE_UNAVAILABLE(
                uri=self._uri,
                why=f"its catalog says that commit {commits.published} is published, and its log lacks it",
            )
        return found

    def _listed_log(self) -> list[FileInfo]:
        found: list[FileInfo] = self._system.get_file_info(FileSelector(_LOG, allow_not_found=True))
        return found

    def commit(self, version: int) -> bytes | None:
        """Read the commit file of the version; None when it is not in the log.

        Raises SOURCE_UNAVAILABLE for a version that the table's catalog doesn't know, even if the log has its file, and
        for a staged commit that is neither where the catalog says nor published. Neither is a gap in the log: a catalog
        may answer with an older state than before.
        """
        commits, path = self._commits.commits, self._commits.path(version)
        if commits is not None and version > commits.latest:
            raise SOURCE_UNAVAILABLE(
                uri=self._uri,
                why=f"its catalog says that version {commits.latest} is the newest, and version {version} is needed",
                next_step="run again. If the error persists, the catalog has lost commits: rebuild the table's mirror.",
            )
        data, published = self._read(path), self._commits.published(path)
        if data is None and published is not None:
            data = self._read(published)
            if data is None:
                raise SOURCE_UNAVAILABLE(
                    uri=self._uri,
                    why=f"its catalog names {path} for commit {version}, and the file is missing",
                    next_step="run again. If the error persists, the commit is lost: restore the file.",
                )
        return data

    def checksum(self, version: int) -> bytes | None:
        """Read the version's checksum file; None without one: writers may leave it out."""
        return self._read(f"{_LOG}/{version:020d}.crc")

    def modified_ms(self, version: int) -> int:
        """Return when the commit file was written, in ms since 1970."""
        commits = self._commits.commits
        if commits is not None and version in commits.staged:
            return commits.staged[version].modified_ms
        with translated(self._uri):
            return written_ms(self._system.get_file_info(commit_path(version)))

    def presence_of(self, path: str) -> FilePresence:
        """Check whether a file of the table's folder, or one elsewhere by its absolute URI, was deleted or can be read.

        A file elsewhere on a disk of this machine never counts as deleted if the table that it belongs to is missing.
        """
        place = _PLACE.fullmatch(path)
        folder = local_folder(self._uri)
        if place is None and folder is not None:
            return local_presence(path, folder)
        if place is not None and place[1].startswith("file:"):
            elsewhere = Path("/", place[2])
            root = next((folder for folder in elsewhere.parents if (folder / _LOG).is_dir()), None)
            if root is None:
                return FilePresence(hindrance="the table that it belongs to is not there")
            return local_presence(str(elsewhere.relative_to(root)), root)
        with translated(self._uri):
            system, at = (self._system, path) if place is None else (self._elsewhere(place[1]), place[2])
            return FilePresence(is_gone=system.get_file_info(at).type is FileType.NotFound)

    def is_tip(self, mark: TipMark) -> bool:
        """Whether the marked commit file is unchanged, and the next one does not exist.

        Reads no listing, which may have many pages, so a newer commit after a missing one is overlooked.
        """
        paths = [commit_path(mark.version), commit_path(mark.version + 1)]
        with translated(self._uri):
            tip, newer = self._system.get_file_info(paths)
        if tip.type is not FileType.File or newer.type is not FileType.NotFound:
            return False
        return (tip.size or 0, written_ms(tip)) == (mark.bytes, mark.modified_ms)

    def rows_in_footer(self, file: LoggedFile) -> int | None:
        """Read the rows of a Parquet file; None if it was deleted, is damaged, or outside of the table's folder."""
        if is_absolute(file.path):
            return None
        try:
            with translated(self._uri, self._listed_log), self._system.open_input_file(file.path) as opened:
                rows: int = pq.read_metadata(opened).num_rows
                return rows
        except (FileNotFoundError, pa.ArrowInvalid):
            return None

    def lost(self, files: Iterable[LoggedFile]) -> tuple[str, ...]:
        """Return the paths of the files that were deleted, as in `presence_of`.

        Files outside of the table's folder are not checked.
        """
        inside = [file.path for file in files if not is_absolute(file.path)]
        with translated(self._uri):
            found = self._system.get_file_info(inside) if inside else []
        absent = [path for path, info in zip(inside, found, strict=True) if info.type is FileType.NotFound]
        return tuple(path for path in absent if self.presence_of(path).is_gone)

    def _read(self, path: str) -> bytes | None:
        """Read a whole file, in one request to a store; None when it does not exist."""
        try:
            with translated(self._uri, self._listed_log):
                system = self._system
                if isinstance(system, PyFileSystem) and isinstance(system.handler, ObjectStoreFiles):
                    return system.handler.read(path)
                with system.open_input_file(path) as file:
                    data: bytes = file.read()
                    return data
        except FileNotFoundError:
            return None


@lru_cache(maxsize=16)
def _shared(root: str, options: tuple[tuple[str, str], ...]) -> FileSystem:
    return remote_files(root, dict(options))


def remote_files(root: str, options: Mapping[str, str]) -> FileSystem:
    """Open the folder of a store at an address as deltalake takes it, with deltalake's options; nothing is read yet."""
    is_known = root.startswith(OBJECT_STORES)
    return PyFileSystem(ObjectStoreFiles(root, options) if is_known else DeltaStorageHandler(root, dict(options)))
