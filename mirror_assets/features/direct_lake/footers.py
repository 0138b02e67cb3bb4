"""Read the footers of Parquet files, each once and in parallel: row groups, column chunks and V-Order."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirror_assets.errors import MirrorError
from mirror_assets.features.direct_lake.errors import CACHE_UNUSABLE, FOOTER_UNREADABLE, LIVE_FILE_MISSING
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.read_errors import translated
from mirror_assets.source.source_files import SourceFiles

# A batch of footers has about this many column chunks, 30 MB as Python's objects, however wide the table is.
_BATCH_CHUNKS, _MOST_FILES, _FIRST_FILES = 100_000, 1_000, 100


@dataclass(frozen=True)
class FooterReader:
    """Reads the footers of one table in batches; a cache on disk has those of the newest version's files.

    Delta's data files never change. The cache is one Parquet file per table, replaced by a rename, so processes need no
    lock: the last one to finish wins, and what it lacks is read again.

    `cache` is the folder of the caches of all tables, None to read every footer.
    """

    uri: str
    opener: SourceFiles
    cache: Path | None = None

    def read(self, files: Sequence[LiveFile], is_dropped: Callable[[str], bool] = lambda _: False) -> Footers:
        """Return the sums of the files' footers; `is_dropped` says whether the table lacks a Parquet column.

        Raises StopError for a file that is missing or no Parquet, SettingError for a cache that can't be used, and
        what the storage raises.
        """
        sums = _Sums(files, is_dropped)
        for batch in self._cached() if files else ():
            sums.add(*sums.found_in(batch))
        cached = sums.is_known.copy()
        missing = np.flatnonzero(~cached)
        with self._replaced_cache() if len(missing) else nullcontext(_ignore) as store:
            for batch in self._cached() if len(missing) and cached.any() else ():
                footers, at = sums.found_in(batch)
                store(footers.filter(pa.array(cached[at])))
            for batch, at in self._read_batches(files, missing):
                sums.add(batch, at)
                store(batch)
        return sums.footers()

    def _read_batches(self, files: Sequence[LiveFile], wanted: Indexes) -> Iterator[tuple[pa.Table, Indexes]]:
        """Yield the footers of the wanted files, in batches that grow until they have enough column chunks."""
        first, size = 0, _FIRST_FILES
        while first < len(wanted):
            at = wanted[first : first + size]
            footers = self.opener.each(self._read_one, [files[index] for index in at])
            yield as_table(footers), at
            first += size
            chunks = sum(len(footer.chunks) for footer in footers) // len(footers)
            size = min(_MOST_FILES, max(1, _BATCH_CHUNKS // max(1, chunks)))

    @property
    def _cache_file(self) -> Path | None:
        address = self.uri if "://" in self.uri else str(Path(self.uri).absolute())
        digest = hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:32]
        return self.cache / f"{digest}-v4.parquet" if self.cache else None

    def _cached(self) -> Iterator[pa.Table]:
        """Yield the cached footers in batches; none without a file or from another format, and up to damage."""
        path = self._cache_file
        if path is not None:
            unread = (FileNotFoundError, NotADirectoryError, ValueError, pa.ArrowException)
            # Importing what read_table needs takes longer than reading the footers of 1,000 files.
            opened = partial(pq.ParquetFile, path, page_checksum_verification=True)
            with _cache_errors(path), suppress(*unread), opened() as file:
                if file.schema_arrow.equals(FOOTER_SCHEMA):
                    for batch in file.iter_batches(batch_size=_MOST_FILES):
                        yield pa.Table.from_batches([batch])

    @contextmanager
    def _replaced_cache(self) -> Iterator[Callable[[pa.Table], None]]:
        """Yield the function that writes a batch into a new cache, which replaces the old one at the end."""
        path = self._cache_file
        if path is None:
            yield _ignore
            return
        written = path.with_name(f".{uuid4().hex}")

        def store(footers: pa.Table) -> None:
            with _cache_errors(path):
                writer.write_table(footers)

        try:
            with _cache_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = pq.ParquetWriter(written, FOOTER_SCHEMA, compression="zstd", write_page_checksum=True)
            yield store
            with _cache_errors(path):
                writer.close()
                written.rename(path)
        finally:
            with suppress(OSError):
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


def _ignore(_: pa.Table) -> None:
    """Store nothing: there is no cache."""


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


Indexes = npt.NDArray[np.int64]
_NO_CHUNKS = pa.schema(list(FOOTER_SCHEMA.field("chunks").type.value_type)).empty_table()
_SUMS = (("compressed", "sum"), ("uncompressed", "sum"), ("longest", "max"), ("plain", "sum"), ("chunks", "sum"))


@dataclass(frozen=True)
class Footers:
    """The sums of many footers: 25 bytes for each file, and 8 for each further row group.

    `rows`, `vorder` and `dropped` (the compressed bytes of dropped columns) have a value for each file, in the order in
    which they were requested; `group_rows` one for each row group, in no order. `writers` counts files by their
    `created_by`. `columns` has a row for each column and physical type: bytes, the uncompressed bytes of the `longest`
    chunk, and how many of its `chunks` are `plain` (see ColumnChunk).
    """

    rows: Indexes
    vorder: npt.NDArray[np.bool_]
    dropped: Indexes
    group_rows: Indexes
    writers: Mapping[str, int]
    columns: pa.Table


class _Sums:
    """Adds up footers, batch by batch, so that the column chunks of one batch alone are in memory."""

    def __init__(self, files: Sequence[LiveFile], is_dropped: Callable[[str], bool]) -> None:
        count = len(files)
        self.is_known = np.zeros(count, np.bool_)
        self._files, self._is_dropped = files, is_dropped
        self._rows, self._dropped = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._vorder, self._groups = np.zeros(count, np.bool_), list[Indexes]()
        self._writers, self._columns = Counter[str](), _summed(_chunk_sums(_NO_CHUNKS))
        self._dropped_columns: dict[str, bool] = {}

    @cached_property
    def _by_hash(self) -> tuple[Indexes, Indexes]:
        """The hashes of all files, sorted, and the index of each: 16 bytes a file."""
        hashes = np.fromiter((hash((file.path, file.bytes)) for file in self._files), np.int64, len(self._files))
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order

    def found_in(self, footers: pa.Table) -> tuple[pa.Table, Indexes]:
        """Return the footers that are of requested files, and the files' indexes: another size is another file."""
        keys = list(zip(footers["path"].to_pylist(), footers["bytes"].to_pylist(), strict=True))
        hashes, order = self._by_hash
        places = np.searchsorted(hashes, np.fromiter(map(hash, keys), np.int64, len(keys)))
        at = order[np.minimum(places, len(order) - 1)]
        named = ((self._files[index].path, self._files[index].bytes) for index in at)
        is_same = np.fromiter((name == key for name, key in zip(named, keys, strict=True)), np.bool_, len(keys))
        return footers.filter(pa.array(is_same)), at[is_same]

    def add(self, footers: pa.Table, at: Indexes) -> None:
        """Add the footers of the files at these indexes, those that aren't known yet."""
        _, first = np.unique(at, return_index=True)
        new = np.sort(first[~self.is_known[at[first]]])
        footers, at = footers.take(pa.array(new)), at[new]
        self.is_known[at] = True
        self._rows[at] = footers["rows"].to_numpy()
        self._vorder[at] = footers["vorder"].to_numpy()
        self._writers.update(footers["created_by"].to_pylist())
        self._groups.append(pc.list_flatten(footers["group_rows"]).to_numpy())
        chunks = footers["chunks"].combine_chunks()
        flat = pa.Table.from_struct_array(pc.list_flatten(chunks))
        for path in pc.unique(flat["column"]).to_pylist():
            self._dropped_columns.setdefault(path, self._is_dropped(path))
        gone = pc.is_in(flat["column"], pa.array([x for x, gone in self._dropped_columns.items() if gone], pa.string()))
        files = pc.list_parent_indices(chunks).to_numpy()
        np.add.at(self._dropped, at[files[gone.to_numpy()]], flat["compressed"].filter(gone).to_numpy())
        self._columns = _summed(pa.concat_tables([self._columns, _chunk_sums(flat)]))

    def footers(self) -> Footers:
        """Return the sums."""
        groups = np.concatenate([np.zeros(0, np.int64), *self._groups])
        return Footers(self._rows, self._vorder, self._dropped, groups, dict(self._writers), self._columns)


def _chunk_sums(chunks: pa.Table) -> pa.Table:
    """Return column chunks as sums of one chunk each."""
    ones = pa.repeat(pa.scalar(1, pa.int64()), len(chunks))
    return pa.Table.from_arrays(
        [
            *(chunks[name] for name in ("column", "physical_type", "compressed", "uncompressed", "uncompressed")),
            chunks["is_plain"].cast(pa.int64()),
            ones,
        ],
        ["column", "physical_type", *dict(_SUMS)],
    )


def _summed(sums: pa.Table) -> pa.Table:
    """Add up the sums of each column and physical type, in the order of their first rows."""
    names = ["column", "physical_type"]
    found = sums.group_by(names, use_threads=False).aggregate(list(_SUMS))
    return found.select([*names, *("_".join(one) for one in _SUMS)]).rename_columns([*names, *dict(_SUMS)])


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
