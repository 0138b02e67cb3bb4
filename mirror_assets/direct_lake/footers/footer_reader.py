"""Read the footers of many files, several at a time, and each one once: its facts are kept on disk.

Delta's data files never change. The cache has a folder per table; each report adds what it had to read as one Parquet
file of facts, under a name that no other process uses, by a rename, so that processes need no lock. Files that two
processes read at once are kept twice and looked up once. Nothing is kept that can't be read from the table again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.direct_lake.errors import cache_unusable, footer_unreadable, live_file_missing
from mirror_assets.direct_lake.footers.facts import FOOTER_SCHEMA, Footer, Footers, as_table
from mirror_assets.direct_lake.footers.footer import read_footer
from mirror_assets.errors import MirrorError
from mirror_assets.source.errors import SourceUnavailable, SourceUnreadable
from mirror_assets.source.source_files import FileState
from mirror_assets.source.storage_errors import translated
from mirror_assets.user_cache import user_cache

# Reading a footer remotely is waiting for it: 1,000 files at 40 ms each take 1.3 s with this many threads.
_THREADS = 32
# So many files' facts are turned into Arrow, and kept, at a time: a report that is killed goes on where it was.
_BATCH = 1_000
# In the names of the cache's files: another set of facts is another number, and older files are ignored.
_FORMAT = "v1"
_MOST_SEGMENTS = 16


class NamedFile(Protocol):
    """A file as the log, or a listing, names it."""

    @property
    def path(self) -> str:
        """In the table's folder, or an absolute URI."""

    @property
    def bytes(self) -> int:
        """Its size."""


class Opener(Protocol):
    """What opens the files of a table; threads share it."""

    @property
    def is_local(self) -> bool:
        """Whether they are on a disk of this machine."""

    def open(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Open the file, to read at random. Raises FileNotFoundError, and what `translated` raises."""

    def state_of(self, path: str) -> FileState:
        """Tell whether the file is gone, or can't be read."""


@dataclass(frozen=True)
class FooterReader:
    """Reads the footers of one table.

    `cache` is where facts are kept, None for nowhere. `dictionaries` also reads the headers of dictionary pages, one
    small read per column and row group of a file of more than 256 KiB: without, cardinality is not known.
    """

    uri: str
    opener: Opener
    cache: FooterCache | None = None
    dictionaries: bool = True

    def read(self, files: Sequence[NamedFile]) -> Footers:
        """Return the facts of the files, in their order.

        Raises StopError for a file that is gone or no Parquet, SettingError for a cache that can't be used, and what
        the storage raises.
        """
        kept = self._kept()
        known = set(_keys(kept))
        missing = [file for file in files if (file.path, file.bytes) not in known]
        read = [self._batch(missing[first : first + _BATCH]) for first in range(0, len(missing), _BATCH)]
        facts = pa.concat_tables([kept, *read]).combine_chunks()
        rows = {key: row for row, key in enumerate(_keys(facts))}
        wanted = facts.take(pa.array([rows[file.path, file.bytes] for file in files], pa.int64()))
        if self.cache is not None and missing:
            self.cache.tidy(wanted)
        return Footers(wanted)

    def _kept(self) -> pa.Table:
        """The cached facts that say enough."""
        kept = FOOTER_SCHEMA.empty_table() if self.cache is None else self.cache.load()
        return kept.filter(kept["dictionaries"]) if self.dictionaries else kept

    def _batch(self, files: Sequence[NamedFile]) -> pa.Table:
        facts = as_table(list(self._footers(files)))
        if self.cache is not None:
            self.cache.add(facts)
        return facts

    def _footers(self, files: Sequence[NamedFile]) -> Iterator[Footer]:
        if self.opener.is_local:  # nothing to wait for: threads are no faster
            yield from map(self._footer, files)
            return
        with ThreadPoolExecutor(_THREADS) as pool:
            try:
                yield from pool.map(self._footer, files)
            except MirrorError:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _footer(self, file: NamedFile) -> Footer:
        try:
            with translated(self.uri), self.opener.open(file.path) as opened:
                return read_footer(opened, file.path, file.bytes, dictionaries=self.dictionaries)
        except FileNotFoundError as error:
            raise self._absent(file.path) from error
        except ValueError as error:
            why = " ".join(str(error).split())
            raise footer_unreadable(self.uri, file.path, why) from error

    def _absent(self, path: str) -> MirrorError:
        """What it means that the file was not found."""
        state = self.opener.state_of(path)
        if state.is_gone:
            return live_file_missing(self.uri, path)
        if state.hindrance is not None:
            return SourceUnreadable(self.uri, f"{path}: {state.hindrance}")
        return SourceUnavailable(self.uri, f"{path} is there, and could not be read a moment before")


def _keys(facts: pa.Table) -> Iterator[tuple[str, int]]:
    """What a file is known by: it never changes, so another size is another file."""
    return zip(facts["path"].to_pylist(), facts["bytes"].to_pylist(), strict=True)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of footers in the user's cache folder.

    What is in it can be read from the tables again, so it may be deleted at any time.
    """
    return user_cache(environment) / "footers"


@dataclass(frozen=True)
class FooterCache:
    """The facts kept of one table's files. Raises SettingError when the folder can't be read or written."""

    folder: Path

    @classmethod
    def of(cls, root: Path, uri: str) -> FooterCache:
        """Return that of the table at `uri`, below the folder `root`; nothing is read or written yet."""
        address = uri if "://" in uri else str(Path(uri).absolute())
        return cls(root / hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:32])

    def load(self) -> pa.Table:
        """Return all that is kept, a row per file, some perhaps twice."""
        return pa.concat_tables([FOOTER_SCHEMA.empty_table(), *self._segments()])

    def add(self, facts: pa.Table) -> None:
        """Keep the facts."""
        with self._translated():
            self.folder.mkdir(parents=True, exist_ok=True)
            name = uuid4().hex
            written = self.folder / f".{name}"
            try:
                pq.write_table(facts, written, compression="zstd", write_page_checksum=True)
                written.rename(self.folder / f"{_FORMAT}-{name}.parquet")
            finally:
                written.unlink(missing_ok=True)

    def tidy(self, wanted: pa.Table) -> None:
        """Replace many files of facts by one with the `wanted` facts.

        Facts of files that no report asks for any more are dropped. A process that was about to read what is deleted
        here reads footers of the table instead.
        """
        names = self._names()
        if len(names) <= _MOST_SEGMENTS:
            return
        self.add(wanted)
        with self._translated():
            for path in names:
                path.unlink(missing_ok=True)

    def _segments(self) -> Iterator[pa.Table]:
        for path in self._names():
            with self._translated():
                table = _read_segment(path)
            if table is not None and table.schema.equals(FOOTER_SCHEMA):
                yield table

    def _names(self) -> Sequence[Path]:
        with self._translated():
            return sorted(self.folder.glob(f"{_FORMAT}-*.parquet"))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise cache_unusable(str(self.folder), why) from error


def _read_segment(path: Path) -> pa.Table | None:
    """The facts in a file; None when another process has tidied it up, or a crash of the machine has damaged it."""
    try:
        # Not read_table: importing what that needs takes longer than reading the facts of 1,000 files.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read()
    except (FileNotFoundError, ValueError, pa.ArrowException):
        return None
    except OSError as error:
        if error.errno is None:  # Arrow's, of what is in the file
            return None
        raise
