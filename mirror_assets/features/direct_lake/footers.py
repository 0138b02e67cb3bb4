"""Read the footers of Parquet files, each once and in parallel: row groups, column chunks and V-Order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.read_errors import translated
from mirror_assets.source.source_files import SourceFiles

# Footers become Arrow tables in batches of this size, which need less memory than Python's objects.
_BATCH = 1_000


@dataclass(frozen=True)
class FooterReader:
    """Reads the footers of one table; a cache on disk has those of the newest version's files.

    Delta's data files never change. The cache is one Parquet file per table, replaced by a rename, so processes need no
    lock: the last one to finish wins, and what it lacks is read again.

    `cache` is the folder of the caches of all tables, None to read every footer.
    """

    uri: str
    opener: SourceFiles
    cache: Path | None = None

    def read(self, files: Sequence[LiveFile]) -> Footers:
        """Return the footers of the files, in their order.

        Raises StopError for a file that is missing or no Parquet, SettingError for a cache that can't be used, and
        what the storage raises.
        """
        cached = self._cached()
        known = set(_keys(cached))
        missing = [file for file in files if (file.path, file.bytes) not in known]
        batches = (missing[first : first + _BATCH] for first in range(0, len(missing), _BATCH))
        read = (as_table(self.opener.each(self._read_one, batch)) for batch in batches)
        footers = pa.concat_tables([cached, *read]).combine_chunks()
        rows = {key: row for row, key in enumerate(_keys(footers))}
        requested = footers.take(pa.array([rows[file.path, file.bytes] for file in files], pa.int64()))
        if missing:
            self._store(requested)
        return Footers(requested)

    @property
    def _cache_file(self) -> Path | None:
        address = self.uri if "://" in self.uri else str(Path(self.uri).absolute())
        digest = hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:32]
        return self.cache / f"{digest}-v4.parquet" if self.cache else None

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

    def _read_one(self, file: LiveFile) -> Footer:
        try:
            with translated(self.uri), self.opener.open(file.path) as opened:
                return read_footer(opened, file.path, file.bytes)
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


@contextmanager
def _cache_errors(path: Path) -> Iterator[None]:
    """Raise CACHE_UNUSABLE for an error of the disk; Arrow's errors about the file's content have no number."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise CACHE_UNUSABLE(folder=str(path.parent), why=error.strerror or str(error)) from error


_VORDER = b"com.microsoft.parquet.vorder.enabled"
# One read of this size has the footers of hundreds of columns.
_TAIL_BYTES = 256 * 1024
# A nonce and a tag follow the footer of a file with encrypted columns.
_SIGNATURE_BYTES = 28
_END_BYTES = 8  # the footer's length and the magic bytes
_DICTIONARY_ENCODINGS = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_LEVEL_ENCODINGS = {"RLE", "BIT_PACKED"}


class ColumnChunk(NamedTuple):
    """One column of one row group; `column` is the path of the leaf, joined by dots.

    `is_plain`: values are known to be stored without a dictionary, at least in part (reference `direct-lake` §2.5).
    """

    column: str
    physical_type: str
    compressed: int
    uncompressed: int
    is_plain: bool


class Footer(NamedTuple):
    """One file; `group_rows` are the rows of each row group.

    `vorder` is the only trustworthy sign of V-Order (reference `direct-lake` §2.4).
    """

    path: str
    bytes: int
    rows: int
    created_by: str
    vorder: bool
    group_rows: Sequence[int]
    chunks: tuple[ColumnChunk, ...]


FOOTER_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
        ("created_by", pa.string()),
        ("vorder", pa.bool_()),
        ("group_rows", pa.list_(pa.int64())),
        (
            "chunks",
            pa.list_(
                pa.struct(
                    [
                        ("column", pa.string()),
                        ("physical_type", pa.string()),
                        ("compressed", pa.int64()),
                        ("uncompressed", pa.int64()),
                        ("is_plain", pa.bool_()),
                    ]
                )
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


def read_footer(file: pa.NativeFile, path: str, size: int) -> Footer:
    """Read the footer of an open file of `size` bytes; most need one read.

    Raises ValueError if the file is not a Parquet file, or is encrypted.
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
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    columns = (group.column(index) for group in groups for index in range(group.num_columns))
    return Footer(
        path=path,
        bytes=size,
        rows=metadata.num_rows,
        created_by=created_by,
        vorder=(metadata.metadata or {}).get(_VORDER, b"").lower() == b"true",
        group_rows=tuple(group.num_rows for group in groups),
        chunks=tuple(
            ColumnChunk(
                column=column.path_in_schema,
                physical_type=column.physical_type,
                compressed=column.total_compressed_size,
                uncompressed=column.total_uncompressed_size,
                is_plain=_is_plain(column, created_by),
            )
            for column in columns
        ),
    )


def _last_bytes(file: pa.NativeFile, size: int, wanted: int) -> bytes:
    start = max(0, size - wanted)
    data: bytes = file.read_at(size - start, start)
    if len(data) < size - start:
        raise ValueError(f"it has only {start + len(data)} bytes of {size}")
    return data


def _is_plain(column: pq.ColumnChunkMetaData, created_by: str) -> bool:
    """Return whether the chunk is known to have values without a dictionary: all, or those after one that grew large.

    parquet-mr (Spark) lists the encoding of a dictionary page as PLAIN_DICTIONARY, so PLAIN means data pages. Other
    writers list PLAIN for the dictionary page, whether data pages use it or not.
    """
    encodings = set(column.encodings)
    if not column.has_dictionary_page and encodings.isdisjoint(_DICTIONARY_ENCODINGS):
        return True
    tells_pages_apart = "PLAIN_DICTIONARY" in encodings and created_by.startswith("parquet-mr")
    return tells_pages_apart and not encodings <= _DICTIONARY_ENCODINGS | _LEVEL_ENCODINGS
