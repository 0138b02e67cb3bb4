"""A landing zone on OneLake; see Store for the contract of each method, and docs/onelake.md for the requests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, cast

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobProperties, StorageStreamDownloader
from azure.storage.filedatalake import DataLakeFileClient, PathProperties

from mirror_assets.errors import UnknownOutcome
from mirror_assets.lakes.object_store import RangeReader
from mirror_assets.zones.errors import (
    FILE_TOO_LARGE,
    ITEM_MISSING,
    PATH_CHANGED,
    PATH_EXISTS,
    PATH_MISSING,
    REQUEST_UNKNOWN,
    STORE_UNAVAILABLE,
    FileTooLarge,
    PathChanged,
    PathExists,
    PathMissing,
)
from mirror_assets.zones.onelake.clients import SMALL, Clients, quoted, unquoted
from mirror_assets.zones.onelake.requests import Requests, RetryPolicy
from mirror_assets.zones.store import Content, FileInfo, checked

_CHUNK = 16 << 20


_WHOLE = 8 << 20  # a file of up to this size is one atomic request; a larger one is written chunk by chunk
_FOLDER_MARK = "hdi_isfolder"


@dataclass(frozen=True)
class ByteRange:
    """The first bytes of a file, its size in bytes, and the ETag of its content."""

    data: bytes
    size: int
    etag: str


def _creation_time(folder: BlobProperties, path: str) -> str:
    """Return when the folder was created, which changes of its content don't change."""
    if folder.creation_time is None:
        raise STORE_UNAVAILABLE(path=path, why="its answer lacks the time when the folder was created")
    return f"{folder.creation_time:%Y%m%d%H%M%S}"


def _first_bytes(path: str, stream: StorageStreamDownloader[bytes], limit: int) -> ByteRange:
    """Return the first bytes of a download, at most `limit`. Raises PathMissing for a folder."""
    if _FOLDER_MARK in (stream.properties.metadata or {}):
        raise PATH_MISSING(path=path)
    data = stream.read(min(limit, stream.size)) if stream.size else b""
    return ByteRange(data, stream.size, unquoted(stream.properties.etag))


def _content(path: str, found: ByteRange, limit: int) -> Content:
    """Return the file if it has no more than `limit` bytes. Raises FileTooLarge."""
    if found.size > limit:
        raise FILE_TOO_LARGE(path=path, size=found.size, limit=limit)
    return Content(found.data, found.etag)


class OneLakeStore:
    """A Store on a folder of a Fabric item."""

    def __init__(self, clients: Clients, policy: RetryPolicy | None = None) -> None:
        """Use the clients of the folder; nothing is requested yet."""
        self._clients, self._address = clients, clients.address
        find_item = clients.item_files().get_blob_properties
        self._requests = Requests(self.root, policy or RetryPolicy(), clients.files.api_version, find_item)

    @property
    def root(self) -> str:
        """The folder's URL."""
        return self._address.url

    def local_path(self, path: str) -> Path | None:
        """None, because it is not on this machine."""
        checked(path)
        return None

    def spark_path(self, path: str) -> str:
        """The abfss URI."""
        return f"{self._address.abfss}/{checked(path)}"

    def head(self, path: str) -> FileInfo | None:
        """The file's size and ETag, or None."""
        client = self._clients.blob(checked(path))
        try:
            found = self._requests.read(path, client.get_blob_properties)
        except PathMissing:
            return None
        return None if _FOLDER_MARK in (found.metadata or {}) else FileInfo(path, found.size, unquoted(found.etag))

    def list(self, folder: str) -> list[FileInfo]:
        """Files and folders directly in `folder`, by name; a listing of several pages is not a snapshot."""
        where = self._address.within_workspace(checked(folder) if folder else "")
        try:
            found = self._requests.read(folder, lambda: list(self._clients.files.get_paths(where, recursive=False)))
        except PathMissing:
            return []
        # The listing of a file has the file itself.
        infos = [self._listed(folder, line) for line in found if line.name != where]
        return sorted(infos, key=lambda info: info.path)

    def _listed(self, folder: str, line: PathProperties) -> FileInfo:
        """Return an entry of a listing. Raises STORE_UNAVAILABLE for one without name, size or ETag."""
        if line.name and line.is_directory:
            return FileInfo(self._address.relative(line.name), 0, "", is_folder=True)
        if not line.name or line.content_length is None or not line.etag:
            raise STORE_UNAVAILABLE(path=folder, why="a line of its listing has no name, size or ETag")
        modified = line.last_modified.timestamp() if line.last_modified else None
        return FileInfo(self._address.relative(line.name), line.content_length, unquoted(line.etag), modified=modified)

    def folder_identity(self, folder: str) -> str | None:
        """ETag and creation time of the folder."""
        found = self._folder(folder)
        return None if found is None else f"{unquoted(found.etag)}-{_creation_time(found, folder)}"

    def read(self, path: str, limit: int) -> Content:
        """The whole file with its ETag."""
        return _content(path, self._beginning(path, limit), limit)

    def read_if_changed(self, path: str, etag: str, limit: int) -> Content | None:
        """The whole file, or None while it still has `etag`: one request, with If-None-Match."""
        client = self._clients.blob(checked(path))

        def ask() -> ByteRange | None:
            try:
                stream = client.download_blob(etag=quoted(etag), match_condition=MatchConditions.IfModified)
            except HttpResponseError as error:
                if error.status_code != HTTPStatus.NOT_MODIFIED:
                    raise
                return None
            return _first_bytes(path, stream, limit)

        found = self._requests.read(path, ask)
        return None if found is None else _content(path, found, limit)

    def open(self, path: str) -> BinaryIO:
        """A seekable reader of one content of the file."""
        first, client = self._beginning(path, SMALL), self._clients.blob(path)

        def download(offset: int, length: int) -> bytes:
            return client.download_blob(
                offset, length, etag=quoted(first.etag), match_condition=MatchConditions.IfNotModified
            ).readall()

        def fetch(offset: int, length: int) -> bytes:
            return self._requests.read(path, partial(download, offset, length))

        return cast("BinaryIO", RangeReader(first.size, fetch, first.data))

    def create(self, path: str, data: bytes) -> str:
        """Write a new file in one atomic request."""
        return self._put(path, data, None)

    def replace(self, path: str, data: bytes, etag: str) -> str:
        """Compare and swap, in one request."""
        return self._put(path, data, etag)

    def rename(self, source: str, target: str, etag: str) -> None:
        """Move atomically, if the source has the ETag and the target is free."""
        client = self._clients.file(checked(source))
        new_name = f"{self._address.workspace}/{self._address.within_workspace(checked(target))}"
        try:
            self._requests.write(
                target,
                lambda: client.rename_file(
                    new_name,
                    match_condition=MatchConditions.IfMissing,
                    source_etag=quoted(etag),
                    source_match_condition=MatchConditions.IfNotModified,
                ),
            )
        except (PathMissing, PathChanged, PathExists) as error:
            raise self._why_not_renamed(source, target, etag, error) from error

    def delete(self, path: str) -> None:
        """Delete a file; no error when there is none."""
        client = self._clients.file(checked(path))
        try:
            self._requests.read(path, client.delete_file)
        except PathMissing:
            return

    def delete_tree(self, folder: str, identity: str | None = None) -> None:
        """Delete a folder and its content; with an `identity`, on condition of its ETag."""
        delete = self._clients.folder(checked(folder)).delete_directory
        etag, _, born = (identity or "").partition("-")
        delete_it = partial(delete, etag=quoted(etag), match_condition=MatchConditions.IfNotModified)
        try:
            self._requests.read(folder, delete_it if identity else delete)
        except PathMissing:
            return
        except PathChanged:
            found = self._folder(folder)
            if found is not None and _creation_time(found, folder) == born:
                raise STORE_UNAVAILABLE(path=folder, why="the folder changed while it was deleted") from None

    def make_folder(self, path: str) -> None:
        """Make the folder; no error when it exists."""
        client = self._clients.folder(checked(path))
        try:
            self._requests.read(path, lambda: client.create_directory(match_condition=MatchConditions.IfMissing))
        except (PathExists, PathChanged):
            return

    def fsync(self, listed: FileInfo) -> FileInfo:
        """Do nothing: a file that OneLake lists with a size and an ETag is durable."""
        checked(listed.path)
        return listed

    def upload(self, source: Path, path: str) -> FileInfo:
        """Copy a file of this machine to a free path, each transfer with a checksum; a chunk at a time is in memory."""
        size = source.stat().st_size
        if size <= _WHOLE:
            return FileInfo(path, size, self.create(path, source.read_bytes()))
        return FileInfo(path, size, self._upload_chunks(source, path, size))

    def _upload_chunks(self, source: Path, path: str, size: int) -> str:
        """Upload the file in chunks of 16 MiB, each with its offset and a checksum, so that each can be retried.

        The final flush is conditional on the ETag of the empty file, so a repeated or late one changes nothing. Only
        one attempt writes to the path. Raises PathExists, and UnknownOutcome.
        """
        client = self._clients.file(checked(path))
        create = partial(client.create_file, match_condition=MatchConditions.IfMissing)
        try:
            empty = unquoted(str(self._requests.write(path, create)["etag"]))
        except UnknownOutcome:
            empty = self._etag_of(client, path, 0)
        except PathChanged as error:
            raise PATH_EXISTS(path=path) from error
        except PathMissing as error:
            raise ITEM_MISSING(root=self.root, code="no landing zone there") from error
        with source.open("rb") as file:
            for offset in range(0, size, _CHUNK):
                chunk = file.read(_CHUNK)
                append = partial(client.append_data, chunk, offset, len(chunk), validate_content=True)
                self._requests.read(path, append)
        end = partial(
            client.flush_data, size, close=True, etag=quoted(empty), match_condition=MatchConditions.IfNotModified
        )
        try:
            return unquoted(self._requests.write(path, end)["etag"])
        except UnknownOutcome:
            return self._etag_of(client, path, size)

    def _etag_of(self, client: DataLakeFileClient, path: str, size: int) -> str:
        """Return the ETag if the file has this size: it has no other writer. Raises UnknownOutcome."""
        try:
            found = self._requests.read(path, client.get_file_properties)
        except PathMissing:
            found = None
        if found is None or found.size != size:
            raise REQUEST_UNKNOWN(path=path, why="its reply was lost, and it has no effect yet") from None
        return unquoted(found.etag)

    def _put(self, path: str, data: bytes, etag: str | None) -> str:
        """Write the whole file, on condition that none exists, or that it has the ETag.

        If the reply was lost, read the file: our bytes prove that the write took effect. Raises UnknownOutcome else.
        """
        # `overwrite` only prevents the SDK from adding a condition of its own.
        put = partial(
            self._clients.blob(checked(path)).upload_blob,
            data,
            length=len(data),
            overwrite=True,
            validate_content=True,
            match_condition=MatchConditions.IfMissing if etag is None else MatchConditions.IfNotModified,
        )
        try:
            written = self._requests.write(path, put if etag is None else partial(put, etag=quoted(etag)))
        except PathChanged as error:
            if etag is None:
                raise PATH_EXISTS(path=path) from error
            info = self.head(path)
            raise (
                PATH_MISSING(path=path) if info is None else PATH_CHANGED(path=path, wanted=etag, found=info.etag)
            ) from error
        except PathMissing as error:
            raise (ITEM_MISSING(root=self.root, code="no landing zone there") if etag is None else error) from error
        except UnknownOutcome:
            try:
                found = self.read(path, len(data))
            except (PathMissing, FileTooLarge):
                found = None
            if found is None or found.data != data:
                raise REQUEST_UNKNOWN(path=path, why="its reply was lost, and the file has other content") from None
            return found.etag
        return unquoted(written["etag"])

    def _folder(self, folder: str) -> BlobProperties | None:
        client = self._clients.blob(checked(folder))
        try:
            found = self._requests.read(folder, client.get_blob_properties)
        except PathMissing:
            return None
        return found if _FOLDER_MARK in (found.metadata or {}) else None

    def _why_not_renamed(self, source: str, target: str, etag: str, refusal: Exception) -> Exception:
        """Determine the condition that failed, or the missing path, which OneLake's answers don't contain."""
        info = self.head(source)
        if info is None:
            return PATH_MISSING(path=source)
        if info.etag != etag:
            return PATH_CHANGED(path=source, wanted=etag, found=info.etag)
        if self.head(target) is not None:
            return PATH_EXISTS(path=target)
        if isinstance(refusal, PathMissing):
            return PATH_MISSING(path=target)  # the folder above it
        return REQUEST_UNKNOWN(path=target, why="it was refused, but could take effect now")

    def _beginning(self, path: str, limit: int) -> ByteRange:
        """Read the file's first bytes, at most `limit` of them."""
        client = self._clients.blob(checked(path))
        return self._requests.read(path, lambda: _first_bytes(path, client.download_blob(), limit))
