"""A landing zone on a local disk: durable writes, atomic renames that never overwrite, ETags from the inode."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mirror_assets.spark_names import spark_path
from mirror_assets.zones.errors import (
    FILE_SYSTEM_UNFIT,
    FILE_TOO_LARGE,
    PATH_CHANGED,
    PATH_EXISTS,
    PATH_MISSING,
    PATH_REFUSED,
    REQUEST_UNKNOWN,
    ROOT_UNUSABLE,
    STORE_DENIED,
    STORE_FULL,
    STORE_UNAVAILABLE,
    PathMissing,
)
from mirror_assets.zones.linux import delete_folder, identity_of, rename_noreplace
from mirror_assets.zones.store import Content, FileInfo, Store, checked

if TYPE_CHECKING:
    from mirror_assets.zones.probe import ResponseRecorder

_TRIES = 10


def _etag(found: os.stat_result) -> str:
    """ETag of a local file (docs/landing-folder.md): a rename keeps all four, any rewrite changes at least one."""
    return f"{found.st_dev:x}-{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Raise the store's errors in place of the operating system's."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise PATH_MISSING(path=path) from error
    except FileExistsError as error:
        raise PATH_EXISTS(path=path) from error
    except PermissionError as error:
        raise STORE_DENIED(path=str(error.filename or path), why=error.strerror or "denied") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise STORE_FULL(path=path) from error
        if error.errno == errno.EROFS:
            raise STORE_DENIED(path=path, why="read-only file system") from error
        if error.errno == errno.ENAMETOOLONG:
            raise PATH_REFUSED(path=path, why="a name in it is longer than the file system allows") from error
        raise STORE_UNAVAILABLE(path=path, why=error.strerror or str(error)) from error


@contextmanager
def _unsure(path: str) -> Iterator[None]:
    """Raise UnknownOutcome for a failure after a rename: the file has moved, but a power cut may undo that."""
    try:
        yield
    except OSError as error:
        raise REQUEST_UNKNOWN(path=path, why=error.strerror or str(error)) from error


def _fsync(path: Path) -> None:
    """Fsync a file or folder, so that a power cut can't undo a reported write."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Create the folder and its parents, and fsync each parent."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        _fsync(made.parent)


def _open_new(file: Path) -> BinaryIO:
    """Open a new file for writing, and create its folder if it is missing.

    Retries, because another publisher that deletes the old, emptied folder may delete the new one while it is empty.
    """
    for _ in range(_TRIES):
        _make_folder(file.parent)
        with suppress(FileNotFoundError):
            return file.open("xb")
    return file.open("xb")


def _listed(folder: str, entry: os.DirEntry[str]) -> FileInfo | None:
    """Return an entry of a listing; None for a file that was moved or deleted since."""
    path = f"{folder}/{entry.name}" if folder else entry.name
    try:
        found = entry.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return FileInfo(path, 0, "", is_folder=True)
    return FileInfo(path, found.st_size, _etag(found), modified=found.st_ctime)


@dataclass(frozen=True)
class LocalZone:
    """A landing zone in a folder of this machine."""

    path: Path

    @property
    def root(self) -> str:
        """The folder's path."""
        return str(self.path)

    uri = root
    is_metered = False
    spark_reach = None

    def open(self, recorder: ResponseRecorder | None = None, *, is_brief: bool = False) -> Store:  # noqa: ARG002 no requests
        """Return the folder's store. Raises SettingError for a path that is not a folder."""
        if self.path.exists() and not self.path.is_dir():
            raise ROOT_UNUSABLE(root=self.root, why="it is a file, not a folder")
        return LocalStore(self.path)

    def local_staging(self) -> LocalStore | None:
        """Return None: Spark writes to the folder."""
        return None


class LocalStore:
    """A Store on a folder of this machine; see Store for the contract of each method."""

    def __init__(self, root: Path) -> None:
        """Use `root`, which need not exist yet."""
        self._root = root.absolute()

    @property
    def root(self) -> str:
        """The folder's absolute path."""
        return str(self._root)

    def _at(self, path: str) -> Path:
        return self._root / checked(path)

    def local_path(self, path: str) -> Path:
        """The file's absolute path."""
        return self._at(path)

    def spark_path(self, path: str) -> str:
        """The same as an address for Spark."""
        return spark_path(str(self._at(path)))

    def head(self, path: str) -> FileInfo | None:
        """The file's size and ETag, or None."""
        try:
            with _translated(path):
                found = self._at(path).stat()
        except PathMissing:
            return None
        return None if stat.S_ISDIR(found.st_mode) else FileInfo(path, found.st_size, _etag(found))

    def list(self, folder: str) -> list[FileInfo]:
        """Files and folders directly in `folder`, by name."""
        try:
            with _translated(folder), os.scandir(self._at(folder) if folder else self._root) as entries:
                found = [info for entry in entries if (info := _listed(folder, entry)) is not None]
        except PathMissing:
            return []
        return sorted(found, key=lambda info: info.path)

    def folder_identity(self, folder: str) -> str | None:
        """Device, inode and time of birth."""
        try:
            with _translated(folder):
                return identity_of(self._at(folder))
        except PathMissing:
            return None

    def read(self, path: str, limit: int) -> Content:
        """The whole file with its ETag."""
        with _translated(path), self._at(path).open("rb") as file:
            found = os.fstat(file.fileno())
            if found.st_size > limit:
                raise FILE_TOO_LARGE(path=path, size=found.st_size, limit=limit)
            return Content(file.read(), _etag(found))

    def read_if_changed(self, path: str, etag: str, limit: int) -> Content | None:
        """The whole file, or None while it still has `etag`, which takes a stat."""
        with _translated(path):
            unchanged = _etag(self._at(path).stat()) == etag
        return None if unchanged else self.read(path, limit)

    def open(self, path: str) -> BinaryIO:
        """A seekable reader of the file."""
        with _translated(path):
            return self._at(path).open("rb")

    def create(self, path: str, data: bytes) -> str:
        """Write a new file: a hidden twin first, then a rename that refuses to overwrite."""
        target = self._at(path)
        with self._twin(path, data, _open_new) as twin:
            etag = _etag(twin.stat())  # before the move: after it, the file may be another publisher's
            self._move(twin, target, path)
            return etag

    def replace(self, path: str, data: bytes, etag: str) -> str:
        """Compare and swap; the only operation with a lock, which spans the comparison and the rename."""
        target = self._at(path)
        with self._twin(path, data, lambda file: file.open("xb")) as twin, self._locked(path):
            with _translated(path):
                found = target.stat()
                if _etag(found) != etag:
                    raise PATH_CHANGED(path=path, wanted=etag, found=_etag(found))
                # The modification time increases with each content: inodes are reused, and clocks are coarse.
                later = max(twin.stat().st_mtime_ns, found.st_mtime_ns + 1)
                os.utime(twin, ns=(later, later))
                swapped = _etag(twin.stat())
                twin.rename(target)
            with _unsure(path):
                _fsync(target.parent)
            return swapped

    def rename(self, source: str, target: str, etag: str) -> None:
        """Move without overwriting. Checking the ETag first suffices, because only one attempt writes a staged name."""
        with _translated(source):
            found = _etag(self._at(source).stat())
        if found != etag:
            raise PATH_CHANGED(path=source, wanted=etag, found=found)
        self._move(self._at(source), self._at(target), target)

    def delete(self, path: str) -> None:
        """Delete a file; no error when there is none."""
        try:
            with _translated(path):
                self._at(path).unlink()
        except PathMissing:
            return

    def delete_tree(self, folder: str, identity: str | None = None) -> None:
        """Delete a folder and its content."""
        try:
            with _translated(folder):
                delete_folder(self._at(folder), identity)
        except PathMissing:
            return

    def fsync(self, listed: FileInfo) -> FileInfo:
        """Fsync a file that Spark wrote, and its folder."""
        path = self._at(listed.path)
        with _translated(listed.path):
            _fsync(path)
            _fsync(path.parent)
            found = path.stat()
        return FileInfo(listed.path, found.st_size, _etag(found))

    def make_folder(self, path: str) -> None:
        """Create the folder inside an existing one."""
        with _translated(path):
            if not self._at(path).is_dir():
                with suppress(FileExistsError):
                    self._at(path).mkdir()
                _fsync(self._at(path).parent)

    def upload(self, source: Path, path: str) -> FileInfo:
        """Copy the file, and fsync the copy."""
        target = self._at(path)
        with _translated(path), source.open("rb") as read, _open_new(target) as write:
            shutil.copyfileobj(read, write)
        return self.fsync(FileInfo(path, 0, ""))

    @contextmanager
    def _twin(self, path: str, data: bytes, open_new: Callable[[Path], BinaryIO]) -> Iterator[Path]:
        """Write a durable file next to `path` under a name that has no reader; delete it unless it was renamed."""
        twin = self._at(path).with_name(f"_new-{uuid.uuid4().hex}")
        try:
            with _translated(path), open_new(twin) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield twin
        finally:
            # An error of the deletion must not hide the first one.
            with suppress(OSError):
                twin.unlink(missing_ok=True)

    def _move(self, source: Path, target: Path, path: str) -> None:
        with _translated(path):
            try:
                rename_noreplace(source, target)
            except OSError as error:
                if error.errno in (errno.EINVAL, errno.ENOSYS):
                    raise FILE_SYSTEM_UNFIT(root=self.root) from error
                raise
        with _unsure(path):
            _fsync(target.parent)
            if source.parent != target.parent:
                with suppress(FileNotFoundError):  # an emptied staging folder is garbage to any publisher
                    _fsync(source.parent)

    @contextmanager
    def _locked(self, path: str) -> Iterator[None]:
        lock = self._at(path).with_name(f"_{self._at(path).name}.lock")
        with _translated(path), lock.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
