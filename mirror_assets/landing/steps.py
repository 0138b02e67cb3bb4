"""Store requests as values, so that the publish protocol is a generator without sleep, clock or random inside.

Tests run the shipped code under every schedule: the driver of the generator decides when a request takes effect,
whether its reply arrives, and what other processes do in between. Control files are read and written by
compare-and-swap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mirror_assets.errors import MirrorError
from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import Receipt, RecordT, decode, encode
from mirror_assets.landing.receipt import read_receipt
from mirror_assets.zones import Content, FileInfo, PathChanged, PathExists, PathMissing, Store
from mirror_assets.zones.errors import REQUEST_UNKNOWN, STORE_DENIED

CONTROL_FILE_LIMIT = 64 << 20
_Reply = TypeVar("_Reply")


class _StoreRequest(ABC, Generic[_Reply]):
    """One request to a store. Steps send it with `yield from`, which evaluates to the reply."""

    @abstractmethod
    def perform(self, store: Store) -> _Reply:
        """Send the request and return the reply."""

    def __iter__(self) -> Steps[_Reply]:
        """Yield the request itself, and return the reply."""
        reply: _Reply = yield self  # type: ignore[misc] # `Request` lists the subclasses
        return reply


@dataclass(frozen=True)
class Read(_StoreRequest[Content | None]):
    """Read a whole control file."""

    path: str

    def perform(self, store: Store) -> Content | None:
        """Return the content, or None if the file doesn't exist."""
        try:
            return store.read(self.path, CONTROL_FILE_LIMIT)
        except PathMissing:
            return None


@dataclass(frozen=True)
class ListFolder(_StoreRequest[list[FileInfo]]):
    """List a folder, without its subfolders' content."""

    folder: str

    def perform(self, store: Store) -> list[FileInfo]:
        """Return files and folders, by name."""
        return store.list(self.folder)


@dataclass(frozen=True)
class Head(_StoreRequest[FileInfo | None]):
    """Get a file's size and ETag."""

    path: str

    def perform(self, store: Store) -> FileInfo | None:
        """Return size and ETag, or None if the file doesn't exist."""
        return store.head(self.path)


@dataclass(frozen=True)
class ReadReceipt(_StoreRequest[Receipt | None]):
    """Read the receipt in a landing file's footer."""

    path: str

    def perform(self, store: Store) -> Receipt | None:
        """Return the receipt, or None if the file has none of ours. Raises PathMissing."""
        return read_receipt(store, self.path)


@dataclass(frozen=True)
class FolderIdentity(_StoreRequest[str | None]):
    """Get a folder's identity, which changes when the folder is deleted and created again."""

    folder: str

    def perform(self, store: Store) -> str | None:
        """Return the identity, or None if the folder doesn't exist."""
        return store.folder_identity(self.folder)


@dataclass(frozen=True)
class Create(_StoreRequest[str]):
    """Create a file. Raises PathExists."""

    path: str
    data: bytes

    def perform(self, store: Store) -> str:
        """Return the ETag."""
        return store.create(self.path, self.data)


@dataclass(frozen=True)
class Replace(_StoreRequest[str]):
    """Compare and swap a file. Raises PathChanged and PathMissing."""

    path: str
    data: bytes
    etag: str

    def perform(self, store: Store) -> str:
        """Return the new ETag."""
        return store.replace(self.path, self.data, self.etag)


@dataclass(frozen=True)
class Rename(_StoreRequest[None]):
    """Move a file with this ETag to a free path. Raises PathMissing, PathChanged and PathExists."""

    source: str
    target: str
    etag: str

    def perform(self, store: Store) -> None:
        """Move the file."""
        store.rename(self.source, self.target, self.etag)


@dataclass(frozen=True)
class Delete(_StoreRequest[None]):
    """Delete a file."""

    path: str

    def perform(self, store: Store) -> None:
        """Delete the file."""
        store.delete(self.path)


@dataclass(frozen=True)
class DeleteTree(_StoreRequest[None]):
    """Delete a folder and its content; with an identity, only the folder that has it."""

    folder: str
    identity: str | None = None

    def perform(self, store: Store) -> None:
        """Delete the folder."""
        store.delete_tree(self.folder, self.identity)


Request = Read | ListFolder | Head | ReadReceipt | FolderIdentity | Create | Replace | Rename | Delete | DeleteTree

# The type of a reply depends on the class of its request, which the type of a generator's `send` can't express.
Steps = Generator[Request, Any, _Reply]


def drive(steps: Steps[_Reply], store: Store) -> _Reply:
    """Run the steps against the store and return their result; the store's errors are raised inside the steps."""
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


@dataclass(frozen=True)
class ControlFile(Generic[RecordT]):
    """The record at a path, and the content with its ETag; both are None if the file doesn't exist.

    An unreadable hint has content and no record.
    """

    path: str
    record: RecordT | None = None
    content: Content | None = None


def read_control_file(model: type[RecordT], path: str, *, is_hint: bool = False) -> Steps[ControlFile[RecordT]]:
    """Read the file. Raises ManifestCorrupt, unless it is a hint: those only save work, and are written again."""
    content = yield from Read(path)
    if content is None:
        return ControlFile(path)
    try:
        return ControlFile(path, decode(model, path, content.data), content)
    except ManifestCorrupt:
        if not is_hint:
            raise
        return ControlFile(path, None, content)


def write_control_file(found: ControlFile[RecordT], record: RecordT) -> Steps[bool]:
    """Write the record in place of `found`; return False if another process has changed the file since."""
    try:
        if found.content is None:
            yield from Create(found.path, encode(record))
        else:
            yield from Replace(found.path, encode(record), found.content.etag)
    except (PathExists, PathChanged, PathMissing):
        return False
    return True


def write_hint(found: ControlFile[RecordT], record: RecordT, store: Store) -> None:
    """Write a record that only saves work: another writer may be faster, and this account may have no permission."""
    with suppress(STORE_DENIED.error, REQUEST_UNKNOWN.error):
        drive(write_control_file(found, record), store)
