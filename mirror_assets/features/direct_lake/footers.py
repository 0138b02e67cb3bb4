"""Read the footers of Parquet files, each once and in parallel: row groups, column chunks, dictionaries and V-Order.

pyarrow parses the footer. It reads no page headers, so `dictionary_size` parses that of a dictionary: its number of
entries bounds a column's different values, on which the advice on columns depends. The encoding of each data page isn't
read: `Coding` follows from the encodings of a whole chunk, and is UNKNOWN where these don't decide.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirror_assets.errors import MirrorError
from mirror_assets.features.direct_lake.errors import CACHE_UNUSABLE, FOOTER_UNREADABLE, LIVE_FILE_MISSING
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE
from mirror_assets.process import user_cache
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.read_errors import translated
from mirror_assets.source.source_files import SourceFiles

# A remote read is mostly latency: 1,000 files at 40 ms each take 1.3 s with this many threads.
_THREADS = 32
# Footers become Arrow tables in batches of this size, which need less memory than Python's objects.
_BATCH = 1_000


@dataclass(frozen=True)
class FooterReader:
    """Reads the footers of one table; a cache on disk has those of the newest version's files.

    Delta's data files never change. The cache is one Parquet file per table, replaced by a rename, so processes need no
    lock: the last one to finish wins, and what it lacks is read again.

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
        state = self.opener.presence_of(path)
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
    """Raise CACHE_UNUSABLE for an error of the disk; Arrow's errors about the file's content have no number."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise CACHE_UNUSABLE(folder=str(path.parent), why=error.strerror or str(error)) from error


_VORDER = b"com.microsoft.parquet.vorder.enabled"
# One read of this size has the footers of hundreds of columns, and all of a small file with its dictionaries.
_TAIL_BYTES = 256 * 1024
# A nonce and a tag follow the footer of a file with encrypted columns.
_SIGNATURE_BYTES = 28
_END_BYTES = 8  # the footer's length and the magic bytes
# A header of a dictionary page is at most this long.
_PAGE_BYTES = 64
_DICTIONARY_ENCODINGS = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_LEVEL_ENCODINGS = {"RLE", "BIT_PACKED"}
# Arrow's writers (C++, and Rust below delta-rs) stop adding to a dictionary of this size.
_FULL_DICTIONARY_BYTES = 2**20


class Coding(str, Enum):
    """How the values of a column chunk are stored (reference `direct-lake` §2.5)."""

    DICTIONARY = "dictionary"  # all data pages
    MIXED = "mixed"  # a dictionary that grew too large, and plain pages after it
    PLAIN = "plain"  # no dictionary
    UNKNOWN = "unknown"  # a dictionary, and perhaps plain pages


class ColumnChunk(NamedTuple):
    """One column of one row group.

    `column` is the path of the leaf, joined by dots. `values` includes nulls; `nulls` is None without statistics.
    `entries` and `dictionary_bytes` (uncompressed) describe the dictionary; None without one, or if it wasn't read.
    """

    column: str
    physical_type: str
    values: int
    nulls: int | None
    compressed: int
    uncompressed: int
    coding: str
    entries: int | None
    dictionary_bytes: int | None


class Footer(NamedTuple):
    """One file. `dictionaries`: the headers of its dictionary pages were read. `group_rows`: rows per row group.

    `vorder` is the only trustworthy sign of V-Order (reference `direct-lake` §2.4).
    """

    path: str
    bytes: int
    rows: int
    created_by: str
    vorder: bool
    dictionaries: bool
    group_rows: Sequence[int]
    chunks: tuple[ColumnChunk, ...]


_TEXTS = ("column", "physical_type", "coding")
FOOTER_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
        ("created_by", pa.string()),
        ("vorder", pa.bool_()),
        ("dictionaries", pa.bool_()),
        ("group_rows", pa.list_(pa.int64())),
        (
            "chunks",
            pa.list_(
                pa.struct([(name, pa.string() if name in _TEXTS else pa.int64()) for name in ColumnChunk._fields])
            ),
        ),
    ]
)


def as_table(footers: Iterable[Footer]) -> pa.Table:
    """Return the footers as a table of FOOTER_SCHEMA, one row per file."""
    return pa.Table.from_pylist([footer._asdict() for footer in footers], schema=FOOTER_SCHEMA)


@dataclass(frozen=True)
class Footers:
    """The footers of many files as a table of FOOTER_SCHEMA, one row per file."""

    table: pa.Table

    @cached_property
    def files(self) -> tuple[Footer, ...]:
        """The files, in the order in which they were requested; their chunks are in `chunks` alone."""
        return tuple(Footer(**row, chunks=()) for row in self.table.drop_columns(["chunks"]).to_pylist())

    @cached_property
    def group_rows(self) -> tuple[int, ...]:
        """The rows of each row group of all files."""
        return tuple(rows for file in self.files for rows in file.group_rows)

    @cached_property
    def chunks(self) -> pa.Table:
        """The column chunks of all files: a column per field of ColumnChunk, and `file`, its index in `files`."""
        chunks = self.table["chunks"].combine_chunks()
        flat = pa.Table.from_struct_array(pc.list_flatten(chunks))
        return flat.append_column("file", pc.list_parent_indices(chunks))

    @property
    def dictionaries(self) -> bool:
        """Whether the dictionary headers of all files were read."""
        return bool(pc.all(self.table["dictionaries"], min_count=0).as_py())


def read_footer(file: pa.NativeFile, path: str, size: int, *, dictionaries: bool) -> Footer:
    """Read the footer of an open file of `size` bytes; `dictionaries`: also the headers of its dictionary pages.

    Most files need one read for the footer. Raises ValueError if the file is not a Parquet file, or is encrypted.
    """
    tail = _last_bytes(file, size, _TAIL_BYTES)
    footer_bytes = int.from_bytes(tail[-_END_BYTES:][:4], "little")
    if len(tail) < footer_bytes + _END_BYTES <= size:
        tail = _last_bytes(file, size, footer_bytes + _END_BYTES)
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail))
    except OSError as error:  # malformed or encrypted bytes: they are in memory, so the storage isn't involved
        raise ValueError(str(error)) from error
    if metadata.serialized_size + _SIGNATURE_BYTES == footer_bytes:
        raise ValueError("its columns are encrypted")  # reading their metadata would crash pyarrow
    created_by = metadata.created_by or ""

    def page_header(begin: int) -> bytes:
        in_tail = begin - (size - len(tail))
        data: bytes = tail[in_tail : in_tail + _PAGE_BYTES] if in_tail >= 0 else file.read_at(_PAGE_BYTES, begin)
        return data

    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    columns = (group.column(index) for group in groups for index in range(group.num_columns))
    return Footer(
        path=path,
        bytes=size,
        rows=metadata.num_rows,
        created_by=created_by,
        vorder=(metadata.metadata or {}).get(_VORDER, b"").lower() == b"true",
        dictionaries=dictionaries,
        group_rows=tuple(group.num_rows for group in groups),
        chunks=tuple(_chunk(column, created_by, page_header if dictionaries else None) for column in columns),
    )


def _chunk(column: pq.ColumnChunkMetaData, created_by: str, page_header: Callable[[int], bytes] | None) -> ColumnChunk:
    """Return the facts of a chunk; `page_header` reads the page at an offset, None to read no dictionary."""
    encodings, statistics, size = set(column.encodings), column.statistics, None
    has_dictionary = column.has_dictionary_page or not _DICTIONARY_ENCODINGS.isdisjoint(encodings)
    if has_dictionary and page_header is not None:
        # parquet-mr before 1.12 (Spark before 3.2) has no offset, or 0: its data begin with the dictionary.
        size = dictionary_size(page_header(column.dictionary_page_offset or column.data_page_offset))
    entries, dictionary_bytes = size or (None, None)
    return ColumnChunk(
        column=column.path_in_schema,
        physical_type=column.physical_type,
        values=column.num_values,
        nulls=statistics.null_count if statistics is not None and statistics.has_null_count else None,
        compressed=column.total_compressed_size,
        uncompressed=column.total_uncompressed_size,
        coding=(_coding(created_by, encodings, dictionary_bytes) if has_dictionary else Coding.PLAIN).value,
        entries=entries,
        dictionary_bytes=dictionary_bytes,
    )


def _last_bytes(file: pa.NativeFile, size: int, wanted: int) -> bytes:
    start = max(0, size - wanted)
    data: bytes = file.read_at(size - start, start)
    if len(data) < size - start:
        raise ValueError(f"it has only {start + len(data)} bytes of {size}")
    return data


def _coding(created_by: str, encodings: set[str], dictionary_bytes: int | None) -> Coding:
    """Return how a chunk with a dictionary is stored."""
    if not encodings - _DICTIONARY_ENCODINGS - _LEVEL_ENCODINGS:
        return Coding.DICTIONARY
    # parquet-mr (Spark) lists the encoding of a dictionary page as PLAIN_DICTIONARY, so PLAIN means data pages. Other
    # writers list PLAIN for the dictionary page, whether data pages use it or not.
    if "PLAIN_DICTIONARY" in encodings and created_by.startswith("parquet-mr"):
        return Coding.MIXED
    is_full = dictionary_bytes is not None and dictionary_bytes >= _FULL_DICTIONARY_BYTES
    return Coding.MIXED if is_full else Coding.UNKNOWN


# Parquet's structs are in Thrift's compact protocol: a byte before each field has its type and the distance of its
# number from the last one. Fields of PageHeader, in the order of their numbers, then of its DictionaryPageHeader.
_UNCOMPRESSED_SIZE, _DICTIONARY_HEADER, _ENTRIES = 2, 7, 1
_INTEGERS, _STRUCT = (4, 5, 6), 12


def dictionary_size(page: bytes) -> tuple[int, int] | None:
    """Return the entries and the uncompressed bytes of the dictionary whose page starts with these bytes.

    None if it is not a dictionary page.
    """
    rest = iter(page)

    def integer() -> int:
        """Read an integer: seven bits a byte, the lowest bit of all for the sign."""
        value = shift = 0
        while (byte := next(rest)) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        value |= byte << shift
        return (value >> 1) ^ -(value & 1)

    field = size = 0
    try:
        while True:
            distance, kind = divmod(next(rest), 16)
            field += distance
            if (field, kind) == (_DICTIONARY_HEADER, _STRUCT):
                entries = divmod(next(rest), 16)
                return (integer(), size) if entries[0] == _ENTRIES and entries[1] in _INTEGERS else None
            if distance == 0 or kind not in _INTEGERS:
                return None
            value = integer()
            if field == _UNCOMPRESSED_SIZE:
                size = value
    except StopIteration:  # the bytes end within the header
        return None
