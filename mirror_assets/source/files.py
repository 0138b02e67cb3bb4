"""Whether a file is there, by a definite answer: what can't be looked for is not gone."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import NativeFile
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem, PyFileSystem, SubTreeFileSystem

from mirror_assets.source.actions import FileAction
from mirror_assets.source.storage_errors import translated


@dataclass(frozen=True)
class FileState:
    """`is_gone`: the store says that there is no such file. `hindrance`: why it can't be read or looked for, if so."""

    is_gone: bool = False
    hindrance: str | None = None


def look_for(path: str, root: Path) -> FileState:
    """The state of a file of this machine at `path` below the folder `root`.

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
    """The Delta table's folder that holds the file, or None where there is none."""
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
_COMMIT = re.compile(r"(\d{20})\.json")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ON_DISK = re.compile(r"file:/+")
_PLACE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/]*)/(.*)", re.DOTALL)


@dataclass(frozen=True)
class StoredFile:
    """A file found by listing; its path is below the table's folder."""

    path: str
    bytes: int
    modified_ms: int


@dataclass(frozen=True)
class TipMark:
    """The newest commit file of a log, as it was found: its version, bytes and time of writing.

    `log_files` is how many files the log had then.
    """

    version: int
    bytes: int
    modified_ms: int
    log_files: int


class SourceFiles:
    """The files of one source; threads may share it. Its errors are those of `translated`."""

    def __init__(self, uri: str, storage_options: Mapping[str, str]) -> None:
        """Open the address; nothing is read yet."""
        self._uri, self._options = uri, dict(storage_options)
        with translated(uri):
            self._system = self._opened()

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

    def _opened(self) -> FileSystem:
        """Arrow's own file system on a disk: ten times as fast as deltalake's, which goes through Python."""
        if self.is_local:
            return SubTreeFileSystem(str(Path(self._uri).absolute()), LocalFileSystem())
        return PyFileSystem(DeltaStorageHandler(self._uri, self._options))

    def listed(self, folder: str = "") -> tuple[StoredFile, ...]:
        """All files below a folder of the table, in no order; none when it is not there."""
        with translated(self._uri):
            found = self._system.get_file_info(FileSelector(folder, allow_not_found=True, recursive=True))
        return tuple(
            StoredFile(info.path, info.size or 0, _written_ms(info)) for info in found if info.type is FileType.File
        )

    def open(self, path: str) -> NativeFile:
        """A file for random reading: one of the table's folder, or one elsewhere by its absolute URI.

        Raises FileNotFoundError when it is gone. Close it.
        """
        with translated(self._uri):
            place = _PLACE.fullmatch(path)
            if place is None:
                return self._system.open_input_file(path)
            return self._elsewhere(place[1]).open_input_file(place[2])

    def _elsewhere(self, root: str) -> FileSystem:
        """What holds a shallow clone's files: the same credentials open it."""
        if root.startswith("file:"):
            return SubTreeFileSystem("/", LocalFileSystem())
        return _remote(f"{root}/", tuple(self._options.items()))

    def commit(self, version: int) -> bytes | None:
        """The commit file of the version, or None when it is not in the log."""
        return self._read(commit_path(version))

    def checksum(self, version: int) -> bytes | None:
        """The version's checksum file, or None: writers may leave it out."""
        return self._read(f"{_LOG}/{version:020d}.crc")

    def modified_ms(self, version: int) -> int:
        """When the commit file was written, in ms."""
        with translated(self._uri):
            return _written_ms(self._system.get_file_info(commit_path(version)))

    def commit_files(self) -> dict[int, int]:
        """The versions whose commit file is in the log, ascending, and when each was written, in ms.

        Checkpoints and compacted logs are none.
        """
        found = [(_COMMIT.fullmatch(info.base_name), _written_ms(info)) for info in self._log_listing()]
        return dict(sorted((int(match[1]), written) for match, written in found if match))

    def log_names(self) -> tuple[str, ...]:
        """The names of all that is in the log's folder, also of what can't be opened; none when it is not there."""
        return tuple(info.base_name for info in self._log_listing())

    def state_of(self, path: str) -> FileState:
        """Whether a file of the table's folder, or one elsewhere by its absolute URI, is gone or can't be read.

        Of a file elsewhere on a disk of this machine nothing is known where the table that it is of is not there.
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

    def tip_mark(self, version: int) -> TipMark | None:
        """The mark of the version's commit file, by one listing; None when it is gone, or any newer one is there."""
        listing = self._log_listing()
        found = {int(match[1]): info for info in listing if (match := _COMMIT.fullmatch(info.base_name))}
        tip = found.get(version)
        if tip is None or max(found) > version:
            return None
        return TipMark(version, tip.size or 0, _written_ms(tip), len(listing))

    def is_tip(self, mark: TipMark) -> bool:
        """Whether the commit file is the very one that was marked, and the next one is not there.

        Reads no listing, which may have many pages: a newer commit behind a hole is overlooked.
        """
        paths = [commit_path(mark.version), commit_path(mark.version + 1)]
        with translated(self._uri):
            tip, newer = self._system.get_file_info(paths)
        if tip.type is not FileType.File or newer.type is not FileType.NotFound:
            return False
        return (tip.size or 0, _written_ms(tip)) == (mark.bytes, mark.modified_ms)

    def _log_listing(self) -> list[FileInfo]:
        with translated(self._uri):
            found: list[FileInfo] = self._system.get_file_info(FileSelector(_LOG, allow_not_found=True))
            return found

    def rows_in_footer(self, action: FileAction) -> int | None:
        """Rows of a Parquet file of the table; None when it is gone, broken, or outside of the table's folder."""
        path = _inside(action)
        if path is None:
            return None
        try:
            with translated(self._uri), self._system.open_input_file(path) as file:
                rows: int = pq.read_metadata(file).num_rows
                return rows
        except (FileNotFoundError, pa.ArrowInvalid):
            return None

    def lost(self, actions: Sequence[FileAction]) -> tuple[str, ...]:
        """Paths of the files that are gone, as in `state_of`; of those elsewhere nothing is known."""
        inside = [path for action in actions if (path := _inside(action)) is not None]
        with translated(self._uri):
            found = self._system.get_file_info(inside) if inside else []
        absent = [path for path, info in zip(inside, found, strict=True) if info.type is FileType.NotFound]
        return tuple(path for path in absent if self.state_of(path).is_gone)

    def _read(self, path: str) -> bytes | None:
        try:
            with translated(self._uri), self._system.open_input_file(path) as file:
                data: bytes = file.read()
                return data
        except FileNotFoundError:
            return None


@lru_cache(maxsize=16)
def _remote(root: str, options: tuple[tuple[str, str], ...]) -> FileSystem:
    return PyFileSystem(DeltaStorageHandler(root, dict(options)))


def _inside(action: FileAction) -> str | None:
    """The file's path below the table's folder, or None when it lies elsewhere."""
    path = unquote(action.path)
    return None if "://" in path or path.startswith(("/", "file:")) else path


def _written_ms(info: FileInfo) -> int:
    return int((info.mtime_ns or 0) // 1_000_000)


def commit_path(version: int) -> str:
    """Where the version's commit file is, in the table's folder."""
    return f"{_LOG}/{version:020d}.json"
