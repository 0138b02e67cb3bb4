"""A remote file as a seekable stream that reads ranges of it."""

from __future__ import annotations

import io
from collections.abc import Callable


class RangeReader(io.RawIOBase):
    """A seekable stream over a remote file of known size."""

    def __init__(
        self, size: int, fetch: Callable[[int, int], bytes], first: bytes = b"", read_ahead: int = 256 << 10
    ) -> None:
        """`fetch(offset, length)` reads bytes of the file, at least `read_ahead` at once; `first` are known ones."""
        self._size, self._fetch, self._read_ahead = size, fetch, read_ahead
        self._at, self._start, self._buffer = 0, 0, first

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
        """Read everything up to the end."""
        return self._take(self._size - self._at)

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes: fewer only at the end."""
        return self.readall() if size is None or size < 0 else self._take(size)

    def readinto(self, target: memoryview | bytearray) -> int:  # type: ignore[override]  # any writable buffer
        """Read into the buffer, and return the number of bytes."""
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
            self._buffer = self._fetch(self._at, max(wanted, min(self._read_ahead, self._size - self._at)))
        self._at += wanted
        return self._buffer[begin : begin + wanted]
