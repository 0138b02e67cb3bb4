"""A landing zone on disk where something happens at the nth store request of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from io import IOBase
from pathlib import Path
from typing import BinaryIO, TypeVar

from mirror_assets.storage import Content, FileInfo, LocalStore
from mirror_assets.storage.errors import RequestUnknown

_Reply = TypeVar("_Reply")


class Killed(BaseException):
    """The process is gone: nothing catches this, and nothing is cleaned up."""


class Happening(Enum):
    """What happens at the request."""

    KILLED_BEFORE = "killed before it"
    KILLED_AFTER = "killed after its effect"
    ANSWER_LOST = "done, and its answer lost"
    NOT_DONE = "not done, and no answer"
    OVERTAKEN = "another run goes all the way before it"


@dataclass(frozen=True)
class Fault:
    """Something that happens at the `at`-th request of a run, from 0; of its writes, where `writes`."""

    happening: Happening
    at: int
    writes: bool

    def __str__(self) -> str:
        return f"{self.happening.value}, {'write' if self.writes else 'request'} {self.at}"


class FaultyStore(LocalStore):
    """The same store, with one fault; after every write `look` looks at what is there."""

    def __init__(self, root: Path, look: Callable[[], None], fault: Fault | None, overtake: Callable[[], None]) -> None:
        super().__init__(root)
        self._look, self._fault, self._overtake = look, fault, overtake
        self._requests = self._writes = 0
        self.happened = False

    def _read(self, request: Callable[[], _Reply], path: str) -> _Reply:
        return self._requested(request, path, writes=False)

    def _write(self, request: Callable[[], _Reply], path: str) -> _Reply:
        reply = self._requested(request, path, writes=True)
        self._look()
        return reply

    def _requested(self, request: Callable[[], _Reply], path: str, *, writes: bool) -> _Reply:
        """The answer, if nothing happens."""
        happening = self._due(writes=writes)
        if happening is Happening.OVERTAKEN:
            self._overtake()
        if happening is Happening.KILLED_BEFORE:
            raise Killed
        if happening is Happening.NOT_DONE and writes:
            raise RequestUnknown(path, "no answer")
        reply = request()
        if happening is Happening.KILLED_AFTER:
            if isinstance(reply, IOBase):
                reply.close()  # as the system does for a process that is gone
            raise Killed
        if happening is Happening.ANSWER_LOST and writes:
            raise RequestUnknown(path, "no answer")
        return reply

    def _due(self, *, writes: bool) -> Happening | None:
        """What happens at this request, which is counted here."""
        fault, count = self._fault, self._writes if self._fault and self._fault.writes else self._requests
        self._requests += 1
        self._writes += writes
        if fault is None or self.happened or (fault.writes and not writes) or count != fault.at:
            return None
        self.happened = True
        return fault.happening

    def head(self, path: str) -> FileInfo | None:
        return self._read(lambda: LocalStore.head(self, path), path)

    def list(self, folder: str) -> list[FileInfo]:
        return self._read(lambda: LocalStore.list(self, folder), folder)

    def folder_identity(self, folder: str) -> str | None:
        return self._read(lambda: LocalStore.folder_identity(self, folder), folder)

    def read(self, path: str, limit: int) -> Content:
        return self._read(lambda: LocalStore.read(self, path, limit), path)

    def read_if_changed(self, path: str, etag: str, limit: int) -> Content | None:
        return self._read(lambda: LocalStore.read_if_changed(self, path, etag, limit), path)

    def open(self, path: str) -> BinaryIO:
        return self._read(lambda: LocalStore.open(self, path), path)

    def create(self, path: str, data: bytes) -> str:
        return self._write(lambda: LocalStore.create(self, path, data), path)

    def replace(self, path: str, data: bytes, etag: str) -> str:
        return self._write(lambda: LocalStore.replace(self, path, data, etag), path)

    def rename(self, source: str, target: str, etag: str) -> None:
        self._write(lambda: LocalStore.rename(self, source, target, etag), target)

    def delete(self, path: str) -> None:
        self._write(lambda: LocalStore.delete(self, path), path)

    def delete_tree(self, folder: str, *identity: str | None) -> None:
        self._write(lambda: LocalStore.delete_tree(self, folder, *identity), folder)

    def fsync(self, listed: FileInfo) -> FileInfo:
        return self._read(lambda: LocalStore.fsync(self, listed), listed.path)

    def make_folder(self, path: str) -> None:
        self._write(lambda: LocalStore.make_folder(self, path), path)
