"""The facts of many files: those that are kept, and for the others their footers, several at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from mirror_assets.direct_lake.footers.cache import FooterCache
from mirror_assets.direct_lake.footers.errors import FooterUnreadable, LiveFileMissing
from mirror_assets.direct_lake.footers.facts import FOOTER_SCHEMA, Footer, as_table
from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.footers.parse import parse_footer
from mirror_assets.direct_lake.footers.tail import read_tail
from mirror_assets.errors import MirrorError
from mirror_assets.source.errors import SourceUnavailable, SourceUnreadable
from mirror_assets.source.source_files import FileState
from mirror_assets.source.storage_errors import translated

# Reading a footer remotely is waiting for it: 1,000 files at 40 ms each take 1.3 s with this many threads.
_THREADS = 32
# So many files' facts are turned into Arrow, and kept, at a time: a report that is killed goes on where it was.
_BATCH = 1_000


class NamedFile(Protocol):
    """A file as the log, or a listing, has it."""

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
        """The file, to read at random. Raises FileNotFoundError, and what `translated` raises."""

    def state_of(self, path: str) -> FileState:
        """Whether it is gone, or can't be read."""


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
        """The facts of the files, in their order.

        Raises LiveFileMissing, FooterUnreadable (StopError), CacheUnusable (SettingError), and what the storage raises.
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
        """What is kept and says enough."""
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
                tail = read_tail(opened, file.bytes)
                return parse_footer(file.path, file.bytes, tail, dictionaries=self.dictionaries)
        except FileNotFoundError as error:
            raise self._absent(file.path) from error
        except ValueError as error:
            raise FooterUnreadable(self.uri, file.path, " ".join(str(error).split())) from error

    def _absent(self, path: str) -> MirrorError:
        """What it means that the file was not found."""
        state = self.opener.state_of(path)
        if state.is_gone:
            return LiveFileMissing(self.uri, path)
        if state.hindrance is not None:
            return SourceUnreadable(self.uri, f"{path}: {state.hindrance}")
        return SourceUnavailable(self.uri, f"{path} is there, and could not be read a moment before")


def _keys(facts: pa.Table) -> Iterator[tuple[str, int]]:
    """What a file is known by: it never changes, so another size is another file."""
    return zip(facts["path"].to_pylist(), facts["bytes"].to_pylist(), strict=True)
