"""The interface of the stores of landing zones.

A store has the few conditional operations that publishing exactly once needs (docs/decisions/0001).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from mirror_assets.zones.errors import PATH_REFUSED

_UNWRITABLE = re.compile(r"[\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class FileInfo:
    """One file or folder of a listing; `etag` is empty and `size` 0 for a folder.

    `modified` is when a listed file was last written or renamed, by the store's clock, in seconds since 1970; None if
    unknown. It is for people, and never decides what is published.
    """

    path: str
    size: int
    etag: str
    is_folder: bool = False
    modified: float | None = field(default=None, compare=False)

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

    Every method may raise STORE_DENIED, STORE_UNAVAILABLE and PATH_REFUSED; writes also STORE_FULL and UnknownOutcome.
    An ETag names one content of one file and survives a rename.
    """

    @property
    def root(self) -> str:
        """The store's address, for messages and links."""
        ...

    def head(self, path: str) -> FileInfo | None:
        """The file's size and ETag, or None."""
        ...

    def list(self, folder: str) -> list[FileInfo]:
        """Files and folders directly in `folder` ("" is the root), by name; empty if it does not exist."""
        ...

    def folder_identity(self, folder: str) -> str | None:
        """An id of the folder, a new one after it is deleted and created again; None if it does not exist."""
        ...

    def read(self, path: str, limit: int) -> Content:
        """The whole file. Raises PathMissing, and FileTooLarge when it has more than `limit` bytes."""
        ...

    def read_if_changed(self, path: str, etag: str, limit: int) -> Content | None:
        """The whole file, or None while it still has `etag`, which costs one request at most and no bytes.

        Raises PathMissing and FileTooLarge.
        """
        ...

    def open(self, path: str) -> BinaryIO:
        """A seekable reader of the file; the caller closes it. Raises PathMissing."""
        ...

    def create(self, path: str, data: bytes) -> str:
        """Write a new file atomically and return its ETag. Raises PathExists."""
        ...

    def replace(self, path: str, data: bytes, etag: str) -> str:
        """Replace the file if it still has `etag`, and return the new ETag. Raises PathMissing and PathChanged."""
        ...

    def rename(self, source: str, target: str, etag: str) -> None:
        """Move a file if the source has `etag` and the target is free. Raises PathMissing, PathChanged, PathExists."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file; no error if it does not exist."""
        ...

    def delete_tree(self, folder: str, identity: str | None = None) -> None:
        """Delete a folder and its content; no error if it does not exist.

        With `identity`, delete only the folder that has it: a late request never deletes a folder created since.
        """
        ...

    def fsync(self, listed: FileInfo) -> FileInfo:
        """Fsync a file that another program wrote, and return its size and ETag. Raises PathMissing."""
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder inside an existing one; no error if it exists. Raises PathMissing."""
        ...

    def upload(self, source: Path, path: str) -> FileInfo:
        """Copy a local file to a free path, in bounded memory, and return its size and ETag. Raises PathExists.

        Not atomic: the path must not be read before this returns.
        """
        ...

    def local_path(self, path: str) -> Path | None:
        """The file's path on this machine, or None for a remote store."""
        ...

    def spark_path(self, path: str) -> str:
        """The file or folder as Spark names it."""
        ...


@dataclass(frozen=True)
class SparkReach:
    """How Spark reaches a place: Hadoop's settings by name, and the Maven coordinates of the JARs that it needs."""

    settings: Mapping[str, str]
    packages: tuple[str, ...]


def checked(path: str) -> str:
    """Return `path`. Raises PATH_REFUSED if it leaves the root, or is not valid in a file system.

    Each store checks each path, so that no setting or manifest can point outside the root.
    """
    if not path or path.startswith("/"):
        raise PATH_REFUSED(path=path, why="it is empty or absolute")
    if _UNWRITABLE.search(path):
        raise PATH_REFUSED(path=path, why="it holds a backslash, a control character or half a surrogate pair")
    if any(segment in ("", ".", "..") for segment in path.split("/")):
        raise PATH_REFUSED(path=path, why="it has an empty, `.` or `..` segment")
    return path
