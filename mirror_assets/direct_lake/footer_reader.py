"""Read the footers of many files in parallel, each one once: a cache on disk holds what was read.

Delta's data files never change. The cache has a folder per table. Each report adds the footers that it read as one
Parquet file with a unique name, by a rename, so processes need no lock. Footers that two processes read at once are
stored twice and used once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.direct_lake.errors import cache_unusable, footer_unreadable, live_file_missing
from mirror_assets.direct_lake.footers import FOOTER_SCHEMA, Footer, Footers, as_table, read_footer
from mirror_assets.errors import MirrorError
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.errors import SourceUnavailable, SourceUnreadable
from mirror_assets.source.source_files import SourceFiles
from mirror_assets.source.store_faults import translated
from mirror_assets.user_cache import user_cache

# A remote read is mostly latency: 1,000 files at 40 ms each take 1.3 s with this many threads.
_THREADS = 32
# Footers are converted and cached in batches of this size, so a report that is killed continues where it stopped.
_BATCH = 1_000
# Part of the cache's file names; files of other formats are ignored.
_FORMAT = "v2"
_MOST_CACHE_FILES = 16


@dataclass(frozen=True)
class FooterReader:
    """Reads the footers of one table.

    `cache` is None to read every footer. `dictionaries` also reads the headers of dictionary pages, one small read per
    column and row group of a file of more than 256 KiB; cardinality is unknown without them.
    """

    uri: str
    opener: SourceFiles
    cache: FooterCache | None = None
    dictionaries: bool = True

    def read(self, files: Sequence[LiveFile]) -> Footers:
        """Return the footers of the files, in their order.

        Raises StopError for a file that is missing or no Parquet, SettingError for a cache that can't be used, and
        what the storage raises.
        """
        cached = FOOTER_SCHEMA.empty_table() if self.cache is None else self.cache.load()
        if self.dictionaries:
            cached = cached.filter(cached["dictionaries"])
        known = set(_keys(cached))
        missing = [file for file in files if (file.path, file.bytes) not in known]
        read = [cached]
        for first in range(0, len(missing), _BATCH):
            batch = as_table(list(self._read_each(missing[first : first + _BATCH])))
            if self.cache is not None:
                self.cache.add(batch)
            read.append(batch)
        footers = pa.concat_tables(read).combine_chunks()
        rows = {key: row for row, key in enumerate(_keys(footers))}
        wanted = footers.take(pa.array([rows[file.path, file.bytes] for file in files], pa.int64()))
        if self.cache is not None and missing:
            self.cache.tidy(wanted)
        return Footers(wanted)

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
            raise footer_unreadable(self.uri, file.path, " ".join(str(error).split())) from error

    def _not_found(self, path: str) -> MirrorError:
        """Return the error for a file that could not be opened."""
        state = self.opener.state_of(path)
        if state.is_gone:
            return live_file_missing(self.uri, path)
        if state.hindrance is not None:
            return SourceUnreadable(self.uri, f"{path}: {state.hindrance}")
        return SourceUnavailable(self.uri, f"{path} exists, but could not be read a moment before")


def _keys(footers: pa.Table) -> Iterator[tuple[str, int]]:
    """Return each file's identity: another size is another file."""
    return zip(footers["path"].to_pylist(), footers["bytes"].to_pylist(), strict=True)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of footers in the user's cache folder. It may be deleted at any time."""
    return user_cache(environment) / "footers"


@dataclass(frozen=True)
class FooterCache:
    """The cached footers of one table. Raises SettingError if the folder can't be read or written."""

    folder: Path

    @classmethod
    def of(cls, root: Path, uri: str) -> FooterCache:
        """Return the cache of the table at `uri`, below the folder `root`; reads and writes nothing yet."""
        address = uri if "://" in uri else str(Path(uri).absolute())
        return cls(root / hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:32])

    def load(self) -> pa.Table:
        """Return all cached footers, one row per file; some files may have two."""
        loaded = [FOOTER_SCHEMA.empty_table()]
        for path in self._files():
            with self._translated():
                table = _read_cache_file(path)
            if table is not None and table.schema.equals(FOOTER_SCHEMA):
                loaded.append(table)
        return pa.concat_tables(loaded)

    def add(self, footers: pa.Table) -> None:
        """Store the footers."""
        with self._translated():
            self.folder.mkdir(parents=True, exist_ok=True)
            name = uuid4().hex
            written = self.folder / f".{name}"
            try:
                pq.write_table(footers, written, compression="zstd", write_page_checksum=True)
                written.rename(self.folder / f"{_FORMAT}-{name}.parquet")
            finally:
                written.unlink(missing_ok=True)

    def tidy(self, wanted: pa.Table) -> None:
        """Replace many cache files by one with the `wanted` footers.

        A process that was about to read a file that is deleted here reads the table's footers instead.
        """
        files = self._files()
        if len(files) <= _MOST_CACHE_FILES:
            return
        self.add(wanted)
        with self._translated():
            for path in files:
                path.unlink(missing_ok=True)

    def _files(self) -> Sequence[Path]:
        with self._translated():
            return sorted(self.folder.glob(f"{_FORMAT}-*.parquet"))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise cache_unusable(str(self.folder), error.strerror or str(error)) from error


def _read_cache_file(path: Path) -> pa.Table | None:
    """Return the footers in a file; None if another process deleted it, or the file is damaged."""
    try:
        # Importing what read_table needs takes longer than reading the footers of 1,000 files.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read()
    except (FileNotFoundError, ValueError, pa.ArrowException):
        return None
    except OSError as error:
        if error.errno is None:  # from Arrow, about the file's content
            return None
        raise
