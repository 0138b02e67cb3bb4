"""Store requests as values, so that the publish protocol is a generator without sleep, clock or random inside.

The code that ships is the code that a test can run under every schedule: the driver of the generator decides when a
request takes effect, whether its reply arrives, and who else acts in between.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import Receipt
from mirror_assets.landing.receipt import read_receipt
from mirror_assets.storage import Content, FileInfo, PathMissing, Store

CONTROL_FILE_LIMIT = 64 << 20
_Reply = TypeVar("_Reply")


@dataclass(frozen=True)
class Read:
    """Ask for a control file whole."""

    path: str

    def perform(self, store: Store) -> Content | None:
        """The content, or None when there is no file."""
        try:
            return store.read(self.path, CONTROL_FILE_LIMIT)
        except PathMissing:
            return None


@dataclass(frozen=True)
class ListFolder:
    """Ask what is directly in a folder."""

    folder: str

    def perform(self, store: Store) -> list[FileInfo]:
        """Files and folders, by name."""
        return store.list(self.folder)


@dataclass(frozen=True)
class Head:
    """Ask for a file's size and ETag."""

    path: str

    def perform(self, store: Store) -> FileInfo | None:
        """Size and ETag, or None when there is no file."""
        return store.head(self.path)


@dataclass(frozen=True)
class ReadReceipt:
    """Ask what a landing file says of itself."""

    path: str

    def perform(self, store: Store) -> Receipt | None:
        """The receipt, or None when the file has none of ours."""
        return read_receipt(store, self.path)


@dataclass(frozen=True)
class Create:
    """Write a new file."""

    path: str
    data: bytes

    def perform(self, store: Store) -> str:
        """The ETag."""
        return store.create(self.path, self.data)


@dataclass(frozen=True)
class Replace:
    """Compare and swap a file."""

    path: str
    data: bytes
    etag: str

    def perform(self, store: Store) -> str:
        """The new ETag."""
        return store.replace(self.path, self.data, self.etag)


@dataclass(frozen=True)
class Rename:
    """Move a file to a free path."""

    source: str
    target: str
    etag: str

    def perform(self, store: Store) -> None:
        """Nothing: it worked."""
        store.rename(self.source, self.target, self.etag)


@dataclass(frozen=True)
class FolderIdentity:
    """Ask which of the folders that had this path is there."""

    folder: str

    def perform(self, store: Store) -> str | None:
        """The identity, or None when there is no folder."""
        return store.folder_identity(self.folder)


@dataclass(frozen=True)
class Delete:
    """Delete a file."""

    path: str

    def perform(self, store: Store) -> None:
        """None: the file was deleted."""
        store.delete(self.path)


@dataclass(frozen=True)
class DeleteTree:
    """Delete a folder with all that is in it; with an identity, only the folder that has it."""

    folder: str
    identity: str | None = None

    def perform(self, store: Store) -> None:
        """None: the file was deleted."""
        store.delete_tree(self.folder, self.identity)


Request = Read | ListFolder | Head | ReadReceipt | FolderIdentity | Create | Replace | Rename | Delete | DeleteTree

# What a request is answered with depends on its class, which the type of a generator's `send` can't say.
Steps = Generator[Request, Any, _Reply]


def drive(steps: Steps[_Reply], store: Store) -> _Reply:
    """The result of the steps, run against `store`; a store's error is thrown into them where they asked."""
    try:
        request = next(steps)
        while True:
            try:
                reply = request.perform(store)
            except MirrorError as error:
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as stop:
        result: _Reply = stop.value
        return result


def read(path: str) -> Steps[Content | None]:
    """The file's content, or None."""
    reply: Content | None = yield Read(path)
    return reply


def list_folder(folder: str) -> Steps[list[FileInfo]]:
    """What is directly in the folder."""
    reply: list[FileInfo] = yield ListFolder(folder)
    return reply


def head(path: str) -> Steps[FileInfo | None]:
    """The file's size and ETag, or None."""
    reply: FileInfo | None = yield Head(path)
    return reply


def identity_of(folder: str) -> Steps[str | None]:
    """Which of the folders that had this path is there, or None."""
    reply: str | None = yield FolderIdentity(folder)
    return reply


def receipt_of(path: str) -> Steps[Receipt | None]:
    """What the landing file says of itself, or None."""
    reply: Receipt | None = yield ReadReceipt(path)
    return reply
