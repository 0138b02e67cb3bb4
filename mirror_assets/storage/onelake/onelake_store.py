"""A landing zone on OneLake; see Store for the contract of each method, and docs/onelake.md for the requests."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, cast

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobProperties, StorageStreamDownloader
from azure.storage.filedatalake import PathProperties

from mirror_assets.storage.errors import (
    FileTooLarge,
    PathChanged,
    PathExists,
    PathMissing,
    RequestUnknown,
    StoreUnavailable,
    item_missing,
)
from mirror_assets.storage.onelake.clients import SMALL, Clients, bare, quoted
from mirror_assets.storage.onelake.large_files import ByteRange, ChunkedUpload, RangeReader
from mirror_assets.storage.onelake.requests import Requests, RetryPolicy
from mirror_assets.storage.store import Content, FileInfo, checked

_WHOLE = 8 << 20  # up to here a file is one request that takes effect whole; above, it is written chunk by chunk
_FOLDER_MARK = "hdi_isfolder"


def _born(folder: BlobProperties, path: str) -> str:
    """Return when the folder was made, which changes of its content don't change."""
    if folder.creation_time is None:
        raise StoreUnavailable(path, "it does not say when the folder was made")
    return f"{folder.creation_time:%Y%m%d%H%M%S}"


def _begun(path: str, stream: StorageStreamDownloader[bytes], limit: int) -> ByteRange:
    """Return the first bytes of a download, at most `limit`. Raises PathMissing for a folder."""
    if _FOLDER_MARK in (stream.properties.metadata or {}):
        raise PathMissing(path)
    data = stream.read(min(limit, stream.size)) if stream.size else b""
    return ByteRange(data, stream.size, bare(stream.properties.etag))


def _content(path: str, found: ByteRange, limit: int) -> Content:
    """Return the file if it has no more than `limit` bytes. Raises FileTooLarge."""
    if found.size > limit:
        raise FileTooLarge(path, found.size, limit)
    return Content(found.data, found.etag)


class OneLakeStore:
    """A Store on a folder of a Fabric item."""

    def __init__(self, clients: Clients, policy: RetryPolicy | None = None) -> None:
        """Use the clients of the folder; nothing is asked yet."""
        self._clients, self._address = clients, clients.address
        self._requests = Requests(self.root, policy or RetryPolicy(), clients.files.api_version)

    @property
    def root(self) -> str:
        """The folder's URL."""
        return self._address.url

    def local_path(self, path: str) -> Path | None:
        """None: it is not on this machine."""
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
        return None if _FOLDER_MARK in (found.metadata or {}) else FileInfo(path, found.size, bare(found.etag))

    def list(self, folder: str) -> list[FileInfo]:
        """Files and folders directly in `folder`, by name; a listing of several pages is not a snapshot."""
        where = self._address.within_workspace(checked(folder) if folder else "")
        try:
            found = self._requests.read(folder, lambda: list(self._clients.files.get_paths(where, recursive=False)))
        except PathMissing:
            return []
        infos = [self._listed(folder, line) for line in found if line.name != where]  # a file, listed, gives itself
        return sorted(infos, key=lambda info: info.path)

    def _listed(self, folder: str, line: PathProperties) -> FileInfo:
        """Describe an entry of a listing. Raises StoreUnavailable for one without name, size or ETag."""
        if line.name and line.is_directory:
            return FileInfo(self._address.relative(line.name), 0, "", is_folder=True)
        if not line.name or line.content_length is None or not line.etag:
            raise StoreUnavailable(folder, "a line of its listing has no name, size or ETag")
        modified = line.last_modified.timestamp() if line.last_modified else None
        return FileInfo(self._address.relative(line.name), line.content_length, bare(line.etag), modified=modified)

    def folder_identity(self, folder: str) -> str | None:
        """ETag and time of creation of the folder."""
        found = self._folder(folder)
        return None if found is None else f"{bare(found.etag)}-{_born(found, folder)}"

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
            return _begun(path, stream, limit)

        found = self._requests.read(path, ask)
        return None if found is None else _content(path, found, limit)

    def open(self, path: str) -> BinaryIO:
        """A seekable reader of one content of the file."""
        first = self._beginning(path, SMALL)
        return cast("BinaryIO", RangeReader(first, lambda offset, length: self._range(path, offset, length, first)))

    def create(self, path: str, data: bytes) -> str:
        """Write a new file in one request that takes effect whole."""
        try:
            return self._put(path, data, None)
        except RequestUnknown:
            return self._ours(path, data)

    def replace(self, path: str, data: bytes, etag: str) -> str:
        """Compare and swap, in one request."""
        try:
            return self._put(path, data, etag)
        except RequestUnknown:
            return self._ours(path, data)

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
        """Delete a folder and all that is in it; with an `identity`, on condition of the ETag that it names."""
        delete = self._clients.folder(checked(folder)).delete_directory
        etag, _, born = (identity or "").partition("-")
        delete_it = partial(delete, etag=quoted(etag), match_condition=MatchConditions.IfNotModified)
        try:
            self._requests.read(folder, delete_it if identity else delete)
        except PathMissing:
            return
        except PathChanged:
            found = self._folder(folder)
            if found is not None and _born(found, folder) == born:
                raise StoreUnavailable(folder, "the folder changed while it was deleted") from None

    def make_folder(self, path: str) -> None:
        """Make the folder; no error when it exists."""
        client = self._clients.folder(checked(path))
        try:
            self._requests.read(path, lambda: client.create_directory(match_condition=MatchConditions.IfMissing))
        except (PathExists, PathChanged):
            return

    def fsync(self, listed: FileInfo) -> FileInfo:
        """Do nothing: what OneLake lists with a size and an ETag is durable."""
        checked(listed.path)
        return listed

    def upload(self, source: Path, path: str) -> FileInfo:
        """Copy a file of this machine to a free path, each transfer checksummed; memory is bounded by a chunk."""
        size = source.stat().st_size
        if size <= _WHOLE:
            return FileInfo(path, size, self.create(path, source.read_bytes()))
        upload = ChunkedUpload(self._requests, self._clients.file(checked(path)), path)
        return FileInfo(path, size, upload.run(source, size))

    def _put(self, path: str, data: bytes, etag: str | None) -> str:
        """Put the whole file, on condition that there is none, or that it has the ETag."""
        # `overwrite` only keeps the SDK from adding a condition of its own.
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
            raise (PathExists(path) if etag is None else self._why_not_replaced(path, etag)) from error
        except PathMissing as error:
            raise (item_missing(self.root, "no landing zone there") if etag is None else error) from error
        return bare(written["etag"])

    def _folder(self, folder: str) -> BlobProperties | None:
        client = self._clients.blob(checked(folder))
        try:
            found = self._requests.read(folder, client.get_blob_properties)
        except PathMissing:
            return None
        return found if _FOLDER_MARK in (found.metadata or {}) else None

    def _ours(self, path: str, data: bytes) -> str:
        """Return the ETag after a write whose reply was lost, if the file holds our bytes. Raises RequestUnknown."""
        try:
            found = self.read(path, len(data))
        except (PathMissing, FileTooLarge):
            found = None
        if found is None or found.data != data:
            raise RequestUnknown(path, "its reply was lost, and what was written is not there") from None
        return found.etag

    def _why_not_replaced(self, path: str, etag: str) -> Exception:
        info = self.head(path)
        return PathMissing(path) if info is None else PathChanged(path, etag, info.etag)

    def _why_not_renamed(self, source: str, target: str, etag: str, refusal: Exception) -> Exception:
        """Find out which condition failed, or what is missing: OneLake's answers don't say."""
        info = self.head(source)
        if info is None:
            return PathMissing(source)
        if info.etag != etag:
            return PathChanged(source, etag, info.etag)
        if self.head(target) is not None:
            return PathExists(target)
        if isinstance(refusal, PathMissing):
            return PathMissing(target)  # the folder above it
        return RequestUnknown(target, "it was refused, and nothing is in its way by now")

    def _beginning(self, path: str, limit: int) -> ByteRange:
        """The file's first bytes, at most `limit` of them."""
        client = self._clients.blob(checked(path))
        return self._requests.read(path, lambda: _begun(path, client.download_blob(), limit))

    def _range(self, path: str, offset: int, length: int, of: ByteRange) -> bytes:
        """Bytes of the same content as `of`. Raises PathChanged."""
        client = self._clients.blob(path)

        def ask() -> bytes:
            return client.download_blob(
                offset, length, etag=quoted(of.etag), match_condition=MatchConditions.IfNotModified
            ).readall()

        return self._requests.read(path, ask)
