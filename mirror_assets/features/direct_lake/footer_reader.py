"""Read the footers of many files in parallel, each one once: a cache on disk has those of the newest version's files.

Delta's data files never change. The cache is one Parquet file per table, replaced by a rename, so processes need no
lock: the last one to finish wins, and what it lacks is read again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.errors import MirrorError
from mirror_assets.features.direct_lake.errors import CACHE_UNUSABLE, FOOTER_UNREADABLE, LIVE_FILE_MISSING
from mirror_assets.features.direct_lake.footers import FOOTER_SCHEMA, Footer, Footers, as_table, read_footer
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.read_errors import translated
from mirror_assets.source.source_files import SourceFiles
from mirror_assets.user_cache import user_cache

# A remote read is mostly latency: 1,000 files at 40 ms each take 1.3 s with this many threads.
_THREADS = 32
# Footers become Arrow tables in batches of this size, which need less memory than Python's objects.
_BATCH = 1_000


@dataclass(frozen=True)
class FooterReader:
    """Reads the footers of one table.

    `cache` is the folder of the caches of all tables, None to read every footer. `dictionaries` also reads the headers
    of dictionary pages, one small read per column and row group of a file of more than 256 KiB; cardinality is unknown
    without them.
    """

    uri: str
    opener: SourceFiles
    cache: Path | None = None
    dictionaries: bool = True

    def read(self, files: Sequence[LiveFile]) -> Footers:
        """Return the footers of the files, in their order.

        Raises StopError for a file that is missing or no Parquet, SettingError for a cache that can't be used, and
        what the storage raises.
        """
        cached = self._cached()
        if self.dictionaries:
            cached = cached.filter(cached["dictionaries"])
        known = set(_keys(cached))
        missing = [file for file in files if (file.path, file.bytes) not in known]
        batches = (missing[first : first + _BATCH] for first in range(0, len(missing), _BATCH))
        footers = pa.concat_tables([cached, *(as_table(self._read_each(batch)) for batch in batches)]).combine_chunks()
        rows = {key: row for row, key in enumerate(_keys(footers))}
        requested = footers.take(pa.array([rows[file.path, file.bytes] for file in files], pa.int64()))
        if missing:
            self._store(requested)
        return Footers(requested)

    @property
    def _cache_file(self) -> Path | None:
        address = self.uri if "://" in self.uri else str(Path(self.uri).absolute())
        digest = hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:32]
        return self.cache / f"{digest}-v3.parquet" if self.cache else None

    def _cached(self) -> pa.Table:
        """Return the cached footers; none without a file, and from one that is damaged or of another format."""
        path = self._cache_file
        if path is not None:
            with _cache_errors(path), suppress(FileNotFoundError, NotADirectoryError, ValueError, pa.ArrowException):
                # Importing what read_table needs takes longer than reading the footers of 1,000 files.
                with pq.ParquetFile(path, page_checksum_verification=True) as file:
                    table = file.read()
                if table.schema.equals(FOOTER_SCHEMA):
                    return table
        return FOOTER_SCHEMA.empty_table()

    def _store(self, footers: pa.Table) -> None:
        path = self._cache_file
        if path is not None:
            with _cache_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                written = path.with_name(f".{uuid4().hex}")
                try:
                    pq.write_table(footers, written, compression="zstd", write_page_checksum=True)
                    written.rename(path)
                finally:
                    written.unlink(missing_ok=True)

    def _read_each(self, files: Sequence[LiveFile]) -> Iterator[Footer]:
        if self.opener.is_local:  # no latency, so threads are no faster
            yield from map(self._read_one, files)
            return
        with ThreadPoolExecutor(_THREADS) as pool:
            try:
                yield from pool.map(self._read_one, files)
            except MirrorError:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _read_one(self, file: LiveFile) -> Footer:
        try:
            with translated(self.uri), self.opener.open(file.path) as opened:
                return read_footer(opened, file.path, file.bytes, dictionaries=self.dictionaries)
        except FileNotFoundError as error:
            raise self._not_found(file.path) from error
        except ValueError as error:
            raise FOOTER_UNREADABLE(uri=self.uri, path=file.path, why=" ".join(str(error).split())) from error

    def _not_found(self, path: str) -> MirrorError:
        """Return the error for a file that could not be opened."""
        state = self.opener.state_of(path)
        if state.is_gone:
            return LIVE_FILE_MISSING(uri=self.uri, path=path)
        if state.hindrance is not None:
            return SOURCE_UNREADABLE(uri=self.uri, why=f"{path}: {state.hindrance}")
        return SOURCE_UNAVAILABLE(uri=self.uri, why=f"{path} exists, but could not be read a moment before")


def _keys(footers: pa.Table) -> Iterator[tuple[str, int]]:
    """Return each file's identity: another size is another file."""
    return zip(footers["path"].to_pylist(), footers["bytes"].to_pylist(), strict=True)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of footers in the user's cache folder. It may be deleted at any time."""
    return user_cache(environment) / "footers"


@contextmanager
def _cache_errors(path: Path) -> Iterator[None]:
    """Raise cache_unusable for an error of the disk; Arrow's errors about the file's content have no number."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise CACHE_UNUSABLE(folder=str(path.parent), why=error.strerror or str(error)) from error
