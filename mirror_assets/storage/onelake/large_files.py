"""Large files on OneLake, in pieces: chunked uploads, and range reads of one content as a seekable stream."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from azure.core import MatchConditions
from azure.storage.filedatalake import DataLakeFileClient

from mirror_assets.storage.errors import PathChanged, PathExists, PathMissing, RequestUnknown, item_missing
from mirror_assets.storage.onelake.clients import quoted, unquoted
from mirror_assets.storage.onelake.requests import Requests

_CHUNK = 16 << 20


class ChunkedUpload:
    """Uploads one file in chunks of 16 MiB, each with its offset and a checksum, so that each can be retried.

    The final flush is conditional on the ETag of the empty file, so a repeated or late one changes nothing. Only one
    attempt writes to the path.
    """

    def __init__(self, requests: Requests, client: DataLakeFileClient, path: str) -> None:
        self._requests, self._client, self._path = requests, client, path

    def run(self, source: Path, size: int) -> str:
        """Upload the file and return its ETag. Raises PathExists, and RequestUnknown for an unknown outcome."""
        empty = self._new_file()
        with source.open("rb") as file:
            for offset in range(0, size, _CHUNK):
                self._append(file.read(_CHUNK), offset)
        end = partial(
            self._client.flush_data,
            size,
            close=True,
            etag=quoted(empty),
            match_condition=MatchConditions.IfNotModified,
        )
        try:
            return unquoted(self._requests.write(self._path, end)["etag"])
        except RequestUnknown:
            return self._etag_of(size)

    def _new_file(self) -> str:
        """Create an empty file and return its ETag."""
        create = partial(self._client.create_file, match_condition=MatchConditions.IfMissing)
        try:
            return unquoted(str(self._requests.write(self._path, create)["etag"]))
        except RequestUnknown:
            return self._etag_of(0)
        except PathChanged as error:
            raise PathExists(self._path) from error
        except PathMissing as error:
            raise item_missing(self._requests.root, "no landing zone there") from error

    def _append(self, chunk: bytes, offset: int) -> None:
        append = partial(self._client.append_data, chunk, offset, len(chunk), validate_content=True)
        self._requests.read(self._path, append)

    def _etag_of(self, size: int) -> str:
        """Return the ETag if the file has this size: it has no other writer. Raises RequestUnknown."""
        try:
            found = self._requests.read(self._path, self._client.get_file_properties)
        except PathMissing:
            found = None
        if found is None or found.size != size:
            raise RequestUnknown(self._path, "its reply was lost, and it has no effect yet") from None
        return unquoted(found.etag)


_READ_AHEAD = 256 << 10


@dataclass(frozen=True)
class ByteRange:
    """Some bytes of a file, its size in bytes, and the ETag of its content."""

    data: bytes
    size: int
    etag: str


class RangeReader(io.RawIOBase):
    """A seekable stream of one content of a file: reading fails if the file changes meanwhile."""

    def __init__(self, first: ByteRange, fetch: Callable[[int, int], bytes]) -> None:
        """Start with the first bytes of the file; `fetch(offset, length)` reads more of the same content."""
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
            self._buffer = self._fetch(self._at, max(wanted, min(_READ_AHEAD, self._size - self._at)))
        self._at += wanted
        return self._buffer[begin : begin + wanted]
