"""Uploads of large files to OneLake, in pieces."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from azure.core import MatchConditions
from azure.storage.filedatalake import DataLakeFileClient

from mirror_assets.storage.errors import (
    ITEM_MISSING,
    PATH_EXISTS,
    REQUEST_UNKNOWN,
    PathChanged,
    PathMissing,
    RequestUnknown,
)
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
        create = partial(self._client.create_file, match_condition=MatchConditions.IfMissing)
        try:
            empty = unquoted(str(self._requests.write(self._path, create)["etag"]))
        except RequestUnknown:
            empty = self._etag_of(0)
        except PathChanged as error:
            raise PATH_EXISTS(path=self._path) from error
        except PathMissing as error:
            raise ITEM_MISSING(root=self._requests.root, code="no landing zone there") from error
        with source.open("rb") as file:
            for offset in range(0, size, _CHUNK):
                chunk = file.read(_CHUNK)
                append = partial(self._client.append_data, chunk, offset, len(chunk), validate_content=True)
                self._requests.read(self._path, append)
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

    def _etag_of(self, size: int) -> str:
        """Return the ETag if the file has this size: it has no other writer. Raises RequestUnknown."""
        try:
            found = self._requests.read(self._path, self._client.get_file_properties)
        except PathMissing:
            found = None
        if found is None or found.size != size:
            raise REQUEST_UNKNOWN(path=self._path, why="its reply was lost, and it has no effect yet") from None
        return unquoted(found.etag)
