"""A file on OneLake as a seekable stream: range reads of one content, with a small buffer."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

_READ_AHEAD = 256 << 10


@dataclass(frozen=True)
class Range:
    """Some bytes of a file, the size of the whole, and the ETag of the content that they are from."""

    data: bytes
    size: int
    etag: str


class RangeReader(io.RawIOBase):
    """The stream. All of its bytes are of one content: should the file change meanwhile, reading fails."""

    def __init__(self, first: Range, fetch: Callable[[int, int], bytes]) -> None:
        """Begin with what is known of the file; `fetch(offset, length)` reads more of the same content."""
        self._fetch, self._size = fetch, first.size
        self._at, self._start, self._buffer = 0, 0, first.data

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The position in bytes."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is read before the next read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readall(self) -> bytes:
        """Everything from here to the end."""
        return self._take(self._size - self._at)

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes from here: fewer only at the end."""
        return self.readall() if size is None or size < 0 else self._take(size)

    def readinto(self, target: memoryview | bytearray) -> int:  # type: ignore[override]  # any writable buffer
        """Fill the buffer from here; how many bytes there were."""
        data = self._take(len(target))
        target[: len(data)] = data
        return len(data)

    def _take(self, size: int) -> bytes:
        wanted = min(size, self._size - self._at)
        if wanted <= 0:
            return b""
        begin = self._at - self._start
        if begin < 0 or begin + wanted > len(self._buffer):
            self._start, begin = self._at, 0
            self._buffer = self._fetch(self._at, max(wanted, min(_READ_AHEAD, self._size - self._at)))
        self._at += wanted
        return self._buffer[begin : begin + wanted]
