"""A store in memory, for tests that run one protocol under very many schedules."""

from __future__ import annotations

import io
import threading
from collections.abc import Hashable, Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from mirror_assets.zones import Content, FileInfo
from mirror_assets.zones.errors import FILE_TOO_LARGE, PATH_CHANGED, PATH_EXISTS, PATH_MISSING
from mirror_assets.zones.store import checked


class MemoryStore:
    """A Store that can be cloned and compared; see Store for the contract of each method.

    An ETag is the path and how many contents the path has held, so that writes to different paths commute: a search
    over schedules then meets far fewer different states.
    """

    def __init__(self) -> None:
        self._files: dict[str, Content] = {}
        self._folders: dict[str, int] = {}
        self._born: dict[str, int] = {}
        self._lock = threading.RLock()

    @classmethod
    def holding(cls, files: Mapping[str, Content]) -> MemoryStore:
        """A store with these files, their ETags, and the folders above them."""
        made = cls()
        for path, content in files.items():
            made._make_folders(path)
            made._files[path] = content
        return made

    def clone(self) -> MemoryStore:
        """A store of its own with the same files, ETags and folders."""
        twin = type(self)()
        twin._files, twin._folders, twin._born = dict(self._files), dict(self._folders), dict(self._born)
        return twin

    def fingerprint(self) -> Hashable:
        """A value that is equal for stores that answer every sequence of requests alike."""
        return tuple(frozenset(part.items()) for part in (self._files, self._folders, self._born))

    @property
    def root(self) -> str:
        return f"memory-{id(self):x}"

    def local_path(self, path: str) -> Path | None:
        checked(path)
        return None

    def spark_path(self, path: str) -> str:
        return f"memory:/{checked(path)}"

    def head(self, path: str) -> FileInfo | None:
        content = self._files.get(checked(path))
        return FileInfo(path, len(content.data), content.etag) if content else None

    def list(self, folder: str) -> list[FileInfo]:
        if folder:
            checked(folder)
        with self._lock:
            files = [(path, content) for path, content in self._files.items() if path.rpartition("/")[0] == folder]
            folders = [path for path in self._folders if path.rpartition("/")[0] == folder]
        found = [FileInfo(path, len(content.data), content.etag) for path, content in files]
        found += [FileInfo(path, 0, "", is_folder=True) for path in folders]
        return sorted(found, key=lambda info: info.path)

    def folder_identity(self, folder: str) -> str | None:
        identity = self._folders.get(checked(folder))
        return None if identity is None else str(identity)

    def read(self, path: str, limit: int) -> Content:
        content = self._content(path)
        if len(content.data) > limit:
            raise FILE_TOO_LARGE(path=path, size=len(content.data), limit=limit)
        return content

    def read_if_changed(self, path: str, etag: str, limit: int) -> Content | None:
        return None if self._content(path).etag == etag else self.read(path, limit)

    def open(self, path: str) -> BinaryIO:
        return io.BytesIO(self._content(path).data)

    def create(self, path: str, data: bytes) -> str:
        with self._lock:
            if checked(path) in self._files or path in self._folders:
                raise PATH_EXISTS(path=path)
            self._make_folders(path)
            return self._put(path, data)

    def replace(self, path: str, data: bytes, etag: str) -> str:
        with self._lock:
            self._require(path, etag)
            return self._put(path, data)

    def rename(self, source: str, target: str, etag: str) -> None:
        with self._lock:
            content = self._require(source, etag)
            if checked(target) in self._files or target in self._folders:
                raise PATH_EXISTS(path=target)
            if any(folder not in self._folders for folder in _folders_above(target)):
                raise PATH_MISSING(path=target)
            self._files[target] = content
            del self._files[source]

    def delete(self, path: str) -> None:
        with self._lock:
            self._files.pop(checked(path), None)

    def delete_tree(self, folder: str, identity: str | None = None) -> None:
        prefix = f"{checked(folder)}/"
        with self._lock:
            if identity not in (None, self.folder_identity(folder)):
                return
            for path in [path for path in self._files if path.startswith(prefix)]:
                del self._files[path]
            for path in [path for path in self._folders if path == folder or path.startswith(prefix)]:
                del self._folders[path]

    def fsync(self, listed: FileInfo) -> FileInfo:
        content = self._content(listed.path)
        return FileInfo(listed.path, len(content.data), content.etag)

    def make_folder(self, path: str) -> None:
        with self._lock:
            if any(folder not in self._folders for folder in _folders_above(checked(path))):
                raise PATH_MISSING(path=path)
            self._make_folders(f"{path}/within")

    def upload(self, source: Path, path: str) -> FileInfo:
        data = source.read_bytes()
        return FileInfo(path, len(data), self.create(path, data))

    def _content(self, path: str) -> Content:
        try:
            return self._files[checked(path)]
        except KeyError:
            raise PATH_MISSING(path=path) from None

    def _require(self, path: str, etag: str) -> Content:
        content = self._content(path)
        if content.etag != etag:
            raise PATH_CHANGED(path=path, wanted=etag, found=content.etag)
        return content

    def _put(self, path: str, data: bytes) -> str:
        self._born[path] = self._born.get(path, 0) + 1
        self._files[path] = Content(data, f"{path}#{self._born[path]}")
        return self._files[path].etag

    def _make_folders(self, path: str) -> None:
        above = _folders_above(path)
        if any(folder in self._files for folder in above):
            raise PATH_EXISTS(path=path)
        for folder in above:
            if folder not in self._folders:
                self._born[folder] = self._born.get(folder, 0) + 1
                self._folders[folder] = self._born[folder]


def _folders_above(path: str) -> list[str]:
    """The folders above a path, the outermost first."""
    return [str(folder) for folder in reversed(PurePosixPath(path).parents[:-1])]
