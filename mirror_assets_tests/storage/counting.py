"""A store that counts what is asked of it."""

from __future__ import annotations

from collections import Counter
from typing import BinaryIO

from mirror_assets.storage import Content, FileInfo, LocalStore


class CountingStore(LocalStore):
    """A folder of this machine; `asked` counts requests by kind since it was last cleared."""

    @property
    def requested(self) -> Counter[str]:
        """The requests by kind."""
        counter: Counter[str] = self.__dict__.setdefault("_asked", Counter())
        return counter

    def head(self, path: str) -> FileInfo | None:
        """Counted."""
        self.requested["head"] += 1
        return super().head(path)

    def list(self, folder: str) -> list[FileInfo]:
        """Counted."""
        self.requested["list"] += 1
        return super().list(folder)

    def read(self, path: str, limit: int) -> Content:
        """Counted."""
        self.requested["read"] += 1
        return super().read(path, limit)

    def open(self, path: str) -> BinaryIO:
        """Counted."""
        self.requested["open"] += 1
        return super().open(path)

    def create(self, path: str, data: bytes) -> str:
        """Counted."""
        self.requested["create"] += 1
        return super().create(path, data)

    def replace(self, path: str, data: bytes, etag: str) -> str:
        """Counted."""
        self.requested["replace"] += 1
        return super().replace(path, data, etag)

    def rename(self, source: str, target: str, etag: str) -> None:
        """Counted."""
        self.requested["rename"] += 1
        super().rename(source, target, etag)

    def delete(self, path: str) -> None:
        """Counted."""
        self.requested["delete"] += 1
        super().delete(path)
