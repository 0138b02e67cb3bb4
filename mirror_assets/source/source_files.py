"""The files of a source by their path in the table: opened, listed, and looked for, with the source's credentials."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import NativeFile
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem, PyFileSystem, SubTreeFileSystem

from mirror_assets.source.access import Access
from mirror_assets.source.actions import LoggedFile
from mirror_assets.source.log_listing import LogListing, TipMark, written_ms
from mirror_assets.source.log_paths import TablePaths, is_absolute
from mirror_assets.source.object_store import SCHEMES as OBJECT_STORES
from mirror_assets.source.object_store import ObjectStoreFiles
from mirror_assets.source.storage_errors import translated


@dataclass(frozen=True)
class FileState:
    """`is_gone`: the store says that there is no such file. `hindrance`: why it can't be read or looked for, if so."""

    is_gone: bool = False
    hindrance: str | None = None


def look_for(path: str, root: Path) -> FileState:
    """Look for a file of this machine at `path` below the folder `root`.

    A file is gone if a folder that is there does not hold it. A folder that is not there, such as a disk that is not
    mounted, one that may not be searched, and a link that leads nowhere say nothing about the file.
    """
    if not root.is_dir():
        return FileState(hindrance=f"the folder {root} is not there")
    place = root
    for name in Path(path).parts:
        place = place / name
        try:
            mode = os.lstat(place).st_mode
        except FileNotFoundError:
            return FileState(is_gone=True)
        except OSError as error:
            return FileState(hindrance=f"{place}: {error.strerror}")
        if stat.S_ISLNK(mode) and not place.exists():
            return FileState(hindrance=f"{place} is a link to {place.readlink()}, which is not there")
    return FileState(hindrance=_unreadable(place))


def table_root(path: Path) -> Path | None:
    """Return the folder of the Delta table that holds the file, or None."""
    return next((folder for folder in path.parents if (folder / "_delta_log").is_dir()), None)


def _unreadable(path: Path) -> str | None:
    if not path.is_file():
        return f"{path} is a folder"
    try:
        path.open("rb").close()
    except OSError as error:
        return f"{path}: {error.strerror}"
    return None


_LOG = "_delta_log"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ON_DISK = re.compile(r"file:/+")
_PLACE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/]*)/(.*)", re.DOTALL)


@dataclass(frozen=True)
class StoredFile:
    """A file found by listing; its path is below the table's folder."""

    path: str
    bytes: int
    modified_ms: int


class SourceFiles:
    """The files of one source; threads may share it. Its errors are those of `translated`."""

    def __init__(self, uri: str, access: Access) -> None:
        """Name the table, and the way to it; nothing is read yet."""
        self._uri, self._access = uri, access
        self._opened: tuple[Mapping[str, str], FileSystem] | None = None

    @cached_property
    def paths(self) -> TablePaths:
        """Decodes the paths of the log."""
        return TablePaths.of(self._uri)

    @property
    def is_local(self) -> bool:
        """Whether they are on a disk of this machine, and named by its path."""
        return not _SCHEME.match(self._uri)

    @property
    def _folder(self) -> Path | None:
        """The table's folder on this machine, if it is there."""
        if self.is_local:
            return Path(self._uri).absolute()
        on_disk = _ON_DISK.match(self._uri)
        return Path("/", unquote(self._uri[on_disk.end() :])) if on_disk else None

    @property
    def _system(self) -> FileSystem:
        """The table's folder; it is opened anew when the credentials have changed."""
        options = {} if self.is_local else self._access.storage_options()
        known = self._opened
        if known is None or known[0] != options:
            known = self._opened = (options, self._open(options))
        return known[1]

    def _open(self, options: Mapping[str, str]) -> FileSystem:
        """Open Arrow's own file system on a disk: it is ten times as fast as deltalake's, which goes through Python."""
        if self.is_local:
            return SubTreeFileSystem(str(Path(self._uri).absolute()), LocalFileSystem())
        return remote_files(self._access.uri, options)

    def listed(self, folder: str = "") -> tuple[StoredFile, ...]:
        """List all files below a folder of the table, in no order; none when it is not there."""
        with translated(self._uri):
            found = self._system.get_file_info(FileSelector(folder, allow_not_found=True, recursive=True))
        return tuple(
            StoredFile(info.path, info.size or 0, written_ms(info)) for info in found if info.type is FileType.File
        )

    def open(self, path: str) -> NativeFile:
        """Open a file for random reading: one of the table's folder, or one elsewhere by its absolute URI.

        The caller closes it. Raises FileNotFoundError when it is gone.
        """
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
        """List the log's folder, also what can't be opened in it; nothing when the folder is not there."""
        with translated(self._uri):
            return LogListing(self._listed_log())

    def _listed_log(self) -> list[FileInfo]:
        found: list[FileInfo] = self._system.get_file_info(FileSelector(_LOG, allow_not_found=True))
        return found

    def commit(self, version: int) -> bytes | None:
        """Read the commit file of the version; None when it is not in the log."""
        return self._read(commit_path(version))

    def checksum(self, version: int) -> bytes | None:
        """Read the version's checksum file; None without one: writers may leave it out."""
        return self._read(f"{_LOG}/{version:020d}.crc")

    def modified_ms(self, version: int) -> int:
        """Return when the commit file was written, in ms since 1970."""
        with translated(self._uri):
            return written_ms(self._system.get_file_info(commit_path(version)))

    def state_of(self, path: str) -> FileState:
        """Look whether a file of the table's folder, or one elsewhere by its absolute URI, is gone or can't be read.

        A file elsewhere on a disk of this machine is never called gone while the table that it belongs to is not there.
        """
        place = _PLACE.fullmatch(path)
        if place is None and (folder := self._folder) is not None:
            return look_for(path, folder)
        if place is not None and place[1].startswith("file:"):
            elsewhere = Path("/", place[2])
            root = table_root(elsewhere)
            if root is None:
                return FileState(hindrance="the table that it is of is not there")
            return look_for(str(elsewhere.relative_to(root)), root)
        with translated(self._uri):
            system, at = (self._system, path) if place is None else (self._elsewhere(place[1]), place[2])
            return FileState(is_gone=system.get_file_info(at).type is FileType.NotFound)

    def is_tip(self, mark: TipMark) -> bool:
        """Whether the commit file is the very one that was marked, and the next one is not there.

        Reads no listing, which may have many pages: a newer commit behind a hole is overlooked.
        """
        paths = [commit_path(mark.version), commit_path(mark.version + 1)]
        with translated(self._uri):
            tip, newer = self._system.get_file_info(paths)
        if tip.type is not FileType.File or newer.type is not FileType.NotFound:
            return False
        return (tip.size or 0, written_ms(tip)) == (mark.bytes, mark.modified_ms)

    def rows_in_footer(self, file: LoggedFile) -> int | None:
        """Read the rows of a Parquet file; None when it is gone, broken, or outside of the table's folder."""
        if is_absolute(file.path):
            return None
        try:
            with translated(self._uri, self._listed_log), self._system.open_input_file(file.path) as opened:
                rows: int = pq.read_metadata(opened).num_rows
                return rows
        except (FileNotFoundError, pa.ArrowInvalid):
            return None

    def lost(self, files: Iterable[LoggedFile]) -> tuple[str, ...]:
        """Return the paths of the files that are gone, as in `state_of`.

        Files outside of the table's folder are not looked for.
        """
        inside = [file.path for file in files if not is_absolute(file.path)]
        with translated(self._uri):
            found = self._system.get_file_info(inside) if inside else []
        absent = [path for path, info in zip(inside, found, strict=True) if info.type is FileType.NotFound]
        return tuple(path for path in absent if self.state_of(path).is_gone)

    def _read(self, path: str) -> bytes | None:
        try:
            with translated(self._uri, self._listed_log):
                return _content(self._system, path)
        except FileNotFoundError:
            return None


@lru_cache(maxsize=16)
def _shared(root: str, options: tuple[tuple[str, str], ...]) -> FileSystem:
    return remote_files(root, dict(options))


def remote_files(root: str, options: Mapping[str, str]) -> FileSystem:
    """Open the folder of a store at an address as deltalake takes it, with deltalake's options; nothing is read yet."""
    is_known = root.startswith(OBJECT_STORES)
    return PyFileSystem(ObjectStoreFiles(root, options) if is_known else DeltaStorageHandler(root, dict(options)))


def has_folder(system: FileSystem, path: str) -> bool:
    """Whether there is such a folder; a store is asked once, and has only folders that hold something."""
    if isinstance(system, PyFileSystem) and isinstance(system.handler, ObjectStoreFiles):
        return system.handler.has_folder(path)
    found: FileType = system.get_file_info(path).type
    return found is FileType.Directory


def _content(system: FileSystem, path: str) -> bytes:
    """Read a whole file; a store is asked once for it."""
    if isinstance(system, PyFileSystem) and isinstance(system.handler, ObjectStoreFiles):
        return system.handler.read(path)
    with system.open_input_file(path) as file:
        data: bytes = file.read()
        return data


def commit_path(version: int) -> str:
    """Return the path of the version's commit file, in the table's folder."""
    return f"{_LOG}/{version:020d}.json"
