"""Relative paths of a store: checked once, so that no setting or manifest can point outside the root."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from mirror_assets.storage.errors import PathRefused

_UNWRITABLE = re.compile(r"[\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def checked(path: str) -> str:
    """`path` itself. Raises PathRefused for one that leaves the root or that no file system could hold."""
    if not path or path.startswith("/"):
        raise PathRefused(path, "it is empty or absolute")
    if _UNWRITABLE.search(path):
        raise PathRefused(path, "it holds a backslash, a control character or half a surrogate pair")
    if any(segment in ("", ".", "..") for segment in path.split("/")):
        raise PathRefused(path, "it has an empty, `.` or `..` segment")
    return path


@dataclass(frozen=True)
class FileInfo:
    """One file or folder of a listing; `etag` is empty and `size` 0 for a folder."""

    path: str
    size: int
    etag: str
    is_folder: bool = False

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Content:
    """A whole small file with the ETag it had when read."""

    data: bytes
    etag: str


class Store(Protocol):
    """A folder of files with ETags, addressed by relative paths ("a/b/c").

    Every method may raise StoreDenied, StoreUnavailable and PathRefused; writes also StoreFull and RequestUnknown.
    An ETag names one content of one file and survives a rename.
    """

    @property
    def root(self) -> str:
        """Where the store is, for messages and links."""
        ...

    def head(self, path: str) -> FileInfo | None:
        """The file's size and ETag, or None."""
        ...

    def list(self, folder: str) -> list[FileInfo]:
        """Files and folders directly in `folder` ("" is the root), by name; empty when there is no such folder."""
        ...

    def folder_identity(self, folder: str) -> str | None:
        """A text that changes when the folder is deleted and made again; None when there is no such folder."""
        ...

    def read(self, path: str, limit: int) -> Content:
        """The whole file. Raises PathMissing, and FileTooLarge when it has more than `limit` bytes."""
        ...

    def read_if_changed(self, path: str, etag: str, limit: int) -> Content | None:
        """The whole file, or None while it still has `etag`: then it costs one request at most, and no bytes.

        Raises PathMissing and FileTooLarge.
        """
        ...

    def open(self, path: str) -> BinaryIO:
        """A seekable reader of the file; the caller closes it. Raises PathMissing."""
        ...

    def create(self, path: str, data: bytes) -> str:
        """Write a new file whole or not at all; its ETag. Raises PathExists."""
        ...

    def replace(self, path: str, data: bytes, etag: str) -> str:
        """Replace the file if it still has `etag`; the new ETag. Raises PathMissing and PathChanged."""
        ...

    def rename(self, source: str, target: str, etag: str) -> None:
        """Move a file if the source has `etag` and the target is free. Raises PathMissing, PathChanged, PathExists."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file; a missing one is fine."""
        ...

    def delete_tree(self, folder: str, identity: str | None = None) -> None:
        """Delete a folder and all that is in it; a missing one is fine.

        With an `identity`, only the folder that has it: one made again meanwhile stays, however late the request is.
        """
        ...

    def fsync(self, listed: FileInfo) -> FileInfo:
        """Make a listed file durable that another program wrote; its size and ETag. Raises PathMissing."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder inside one that exists; one that is there already is fine. Raises PathMissing."""
        ...

    def upload(self, source: Path, path: str) -> FileInfo:
        """Copy a file of this machine to a free path; its size and ETag. Memory is bounded. Raises PathExists.

        A reader may see less than the whole before it returns: the path is one that nobody reads.
        """
        ...

    def local_path(self, path: str) -> Path | None:
        """Where the file is on this machine, or None for a remote store."""
        ...

    def spark_path(self, path: str) -> str:
        """How Spark names the file or folder."""
        ...
