"""Writes a large file chunk by chunk, to a name that is one attempt's alone; memory is bounded by a chunk."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from azure.core import MatchConditions
from azure.storage.filedatalake import DataLakeFileClient

from mirror_assets.storage.errors import ItemMissing, PathChanged, PathExists, PathMissing, RequestUnknown
from mirror_assets.storage.onelake.etags import bare, quoted
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
            raise ItemMissing(self._requests.root, "no landing zone there") from error

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
