"""Files of object stores as an Arrow file system for reading, by obstore.

deltalake's own file system holds Python's lock while a listing or an opening waits for the store: tables would wait for
each other, and a store that never answers would stop the process. obstore is built on the same library as deltalake,
takes the same options, and waits without the lock.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType

from mirror_assets.telemetry.record import count_request

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

# Schemes that obstore opens; HDFS is not among them.
SCHEMES = ("s3://", "abfs://", "abfss://", "gs://")
_THREADS = 16
# The footer of a Parquet file takes one request.
_READ_AHEAD = 1 << 20
# deltalake's options for its HTTP client and its retries; the rest configures the store.
_ALLOW_HTTP = ("allow_http", "aws_allow_http", "azure_allow_http")
_CLIENT = ("timeout", "connect_timeout")


class ObjectStoreFiles(FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """The files below one address; threads may share it. Paths are relative to the address. It only reads.

    Raises FileNotFoundError for a missing file, and OSError with the store's message for any other error.
    """

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        """Name the folder and deltalake's options for it; nothing is read yet."""
        from obstore.store import from_url

        config = dict(options)
        client: ClientConfig = {}
        if any(config.pop(name, "").lower() == "true" for name in _ALLOW_HTTP):
            client["allow_http"] = True
        for name in _CLIENT:
            if name in config:
                client[name] = config.pop(name)  # type: ignore[literal-required]
        retry: RetryConfig = {}
        if "max_retries" in config:
            retry["max_retries"] = int(config.pop("max_retries"))
        if "retry_timeout" in config:
            retry["retry_timeout"] = timedelta(seconds=float(config.pop("retry_timeout").rstrip("s")))
        scheme, _, rest = uri.partition("://")
        # The name of the store in metrics has the bucket and no path.
        self._uri, self._root = uri, f"{scheme}://{rest.partition('/')[0]}"
        with _as_os_error():
            self._store: ObjectStore = from_url(uri, config=config, client_options=client, retry_config=retry)  # type: ignore[call-overload]

    def __eq__(self, other: object) -> bool:
        """Whether it is the same one."""
        return self is other

    def __hash__(self) -> int:
        """Go by identity, as equality does."""
        return id(self)

    def get_type_name(self) -> str:
        """Return a name for messages of Arrow."""
        return "obstore"

    def normalize_path(self, path: str) -> str:
        """Return the path unchanged."""
        return path

    def read(self, path: str) -> bytes:
        """Read a whole file, in one request."""
        import obstore

        with _counted(self._root, "get"):
            return obstore.get(self._store, path).bytes().to_bytes()

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        """Request each of the files, concurrently."""
        if len(paths) < 2:
            return [self._info(path) for path in paths]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(self._info, paths))

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        """List a folder; a missing one is empty."""
        import obstore

        folder = selector.base_dir.strip("/")
        with _counted(self._root, "list"):
            if selector.recursive:
                return [_file(meta) for page in obstore.list(self._store, folder or None) for meta in page]
            found = obstore.list_with_delimiter(self._store, folder or None)
        folders = [FileInfo(path, FileType.Directory) for path in found["common_prefixes"]]
        return [*folders, *map(_file, found["objects"])]

    def open_input_file(self, path: str) -> pa.PythonFile:
        """Open a file for random reading."""
        import obstore

        def fetch(offset: int, length: int) -> bytes:
            with _counted(self._root, "get"):
                return bytes(obstore.get_range(self._store, path, start=offset, length=length))

        with _counted(self._root, "head"):
            size = obstore.head(self._store, path)["size"]
        return pa.PythonFile(RangeReader(size, fetch, read_ahead=_READ_AHEAD), mode="r")

    open_input_stream = open_input_file

    def _info(self, path: str) -> FileInfo:
        import obstore

        try:
            with _counted(self._root, "head"):
                return _file(obstore.head(self._store, path))
        except FileNotFoundError:
            return FileInfo(path, FileType.NotFound)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise OSError(f"{self._uri} is opened for reading only")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse


def _file(meta: ObjectMeta) -> FileInfo:
    return FileInfo(meta["path"], FileType.File, size=meta["size"], mtime=meta["last_modified"].timestamp())


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise deltalake's kind of error in place of obstore's; `store_faults` detects the cause by the message."""
    from obstore.exceptions import BaseError, NotFoundError

    try:
        yield
    except NotFoundError as error:
        raise FileNotFoundError(str(error)) from error
    except BaseError as error:
        raise OSError(str(error)) from error


@contextmanager
def _counted(root: str, operation: str) -> Iterator[None]:
    """Record a request in the metrics, with the kind of `_as_os_error`'s error as its status."""
    status = "error"
    try:
        with _as_os_error():
            yield
        status = "ok"
    except FileNotFoundError:
        status = "missing"
        raise
    finally:
        count_request(root, operation, status)


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
