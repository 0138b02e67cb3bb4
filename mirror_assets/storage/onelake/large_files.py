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
from mirror_assets.storage.onelake.clients import bare, quoted
from mirror_assets.storage.onelake.requests import Requests

_CHUNK = 16 << 20


class ChunkedUpload:
    """One upload. Each chunk has its position, so that it can be sent again, and a checksum.

    What ends the file is on condition of the ETag that it began with: repeated or late, it changes nothing.
    """

    def __init__(self, requests: Requests, client: DataLakeFileClient, path: str) -> None:
        self._requests, self._client, self._path = requests, client, path

    def run(self, source: Path, size: int) -> str:
        """The ETag of the copy. Raises PathExists, and RequestUnknown when nobody can tell whether it is there."""
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
            return bare(self._requests.write(self._path, end)["etag"])
        except RequestUnknown:
            return self._etag_of(size)

    def _new_file(self) -> str:
        """The ETag of a new, empty file."""
        create = partial(self._client.create_file, match_condition=MatchConditions.IfMissing)
        try:
            return bare(str(self._requests.write(self._path, create)["etag"]))
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
        """The ETag of the file, if it is as long as it is to be by now: nobody else writes it."""
        try:
            found = self._requests.read(self._path, self._client.get_file_properties)
        except PathMissing:
            found = None
        if found is None or found.size != size:
            raise RequestUnknown(self._path, "its reply was lost, and it is not done") from None
        return bare(found.etag)


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
