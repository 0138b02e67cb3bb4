"""Read the facts of one Parquet file from its end, in one read for most files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.direct_lake.footers.facts import Chunk, Coding, Footer, RowGroup
from mirror_assets.direct_lake.footers.thrift import DICTIONARY_HEADER_BYTES, dictionary_header, pages_by_dictionary

# A read costs a remote store as much as its latency; footers of a hundred columns are shorter than this, and so are
# files so small that there are many of them, whose dictionaries then cost no read of their own.
_TAIL_BYTES = 256 * 1024
_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
# A signature follows the footer of a file with encrypted columns: a nonce and a tag.
_SIGNATURE_BYTES = 28
_END_BYTES = 8  # the footer's length and the magic bytes

_DICTIONARY_ENCODINGS = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_LEVEL_ENCODINGS = {"RLE", "BIT_PACKED"}
# Copies of the schema, kilobytes a file.
_SCHEMA_KEYS = {"ARROW:schema", "pandas", "org.apache.spark.sql.parquet.row.metadata", "parquet.avro.schema"}
# Microseconds in a unit, as a fraction.
_DAY = (86_400_000_000, 1)
_UNITS = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
_MOST_US = 2**63 - 1


def read_footer(file: pa.NativeFile, path: str, size: int, *, dictionaries: bool) -> Footer:
    """Read the facts of an open file of `size` bytes; `dictionaries`: also the headers of its dictionary pages.

    Raises ValueError when the file is not what Parquet writes, or is encrypted.
    """
    tail = _read_tail(file, size)
    metadata = tail.metadata()
    chunks = tuple(_Chunks(metadata, tail, dictionaries=dictionaries).all())
    return Footer(
        path=path,
        bytes=size,
        rows=metadata.num_rows,
        created_by=metadata.created_by or "",
        dictionaries=dictionaries,
        key_values=tuple(_key_values(metadata)),
        groups=tuple(_groups(metadata, chunks)),
        chunks=chunks,
    )


@dataclass(frozen=True)
class _Tail:
    """The bytes of a file from `start` to its end, which its footer is part of."""

    file: pa.NativeFile
    start: int
    data: bytes
    footer_bytes: int

    @property
    def footer(self) -> bytes:
        return self.data[-_END_BYTES - self.footer_bytes : -_END_BYTES]

    def metadata(self) -> pq.FileMetaData:
        """Parse the footer with pyarrow. Raises ValueError when it is none, or its columns are encrypted."""
        try:
            metadata = pq.read_metadata(pa.BufferReader(_MAGIC + self.data[-_END_BYTES - self.footer_bytes :]))
        except OSError as error:  # of its bytes, not of the storage that they came from
            raise ValueError(str(error)) from error
        if metadata.serialized_size + _SIGNATURE_BYTES == self.footer_bytes:
            raise ValueError("its columns are encrypted")  # pyarrow would end the process over them
        return metadata

    def at(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes of the file from `offset`; reads only what lies before the tail."""
        if offset >= self.start:
            return self.data[offset - self.start : offset - self.start + size]
        read: bytes = self.file.read_at(size, offset)
        return read


def _read_tail(file: pa.NativeFile, size: int) -> _Tail:
    data = _end(file, size, _TAIL_BYTES)
    if data[-len(_MAGIC) :] == _ENCRYPTED:
        raise ValueError("it is encrypted")
    if len(data) < _END_BYTES + len(_MAGIC) or data[-len(_MAGIC) :] != _MAGIC:
        raise ValueError(f"it has not the magic bytes of Parquet at the end of {size} bytes")
    footer_bytes = int.from_bytes(data[-_END_BYTES : -len(_MAGIC)], "little")
    if footer_bytes + _END_BYTES > size:
        raise ValueError(f"it tells of a footer of {footer_bytes} bytes, but has {size} bytes in all")
    if footer_bytes + _END_BYTES > len(data):
        data = _end(file, size, footer_bytes + _END_BYTES)
    return _Tail(file, size - len(data), data, footer_bytes)


def _end(file: pa.NativeFile, size: int, wanted: int) -> bytes:
    start = max(0, size - wanted)
    data: bytes = file.read_at(size - start, start)
    if len(data) < size - start:
        raise ValueError(f"it has only {start + len(data)} bytes of {size}")
    return data


@dataclass(frozen=True)
class _Chunks:
    metadata: pq.FileMetaData
    tail: _Tail
    dictionaries: bool

    def all(self) -> Iterator[Chunk]:
        for group in range(self.metadata.num_row_groups):
            row_group = self.metadata.row_group(group)
            for column in range(row_group.num_columns):
                yield self._chunk(group, column, row_group.column(column))

    def _chunk(self, group: int, index: int, column: pq.ColumnChunkMetaData) -> Chunk:
        encodings, statistics = column.encodings, column.statistics
        has_dictionary = column.has_dictionary_page or not _DICTIONARY_ENCODINGS.isdisjoint(encodings)
        # parquet-mr before 1.12 (Spark before 3.2) left the first out, or wrote 0: its data begin with the dictionary.
        begin = column.dictionary_page_offset or column.data_page_offset
        reads_header = has_dictionary and self.dictionaries
        header = dictionary_header(self.tail.at(begin, DICTIONARY_HEADER_BYTES)) if reads_header else None
        least_us, most_us = self._bounds(index, statistics)
        return Chunk(
            group=group,
            column=column.path_in_schema,
            physical_type=column.physical_type,
            values=column.num_values,
            nulls=statistics.null_count if statistics is not None and statistics.has_null_count else None,
            compressed=column.total_compressed_size,
            uncompressed=column.total_uncompressed_size,
            encodings=",".join(sorted(encodings)),
            coding=(self._coding(group, index, set(encodings)) if has_dictionary else Coding.PLAIN).value,
            entries=header.entries if header else None,
            dictionary_bytes=header.bytes if header else None,
            least_us=least_us,
            most_us=most_us,
        )

    def _bounds(self, index: int, statistics: pq.Statistics | None) -> tuple[int, int] | tuple[None, None]:
        unit = self._time_units[index]
        if unit is None or statistics is None or not statistics.has_min_max:
            return None, None
        times, by = unit
        least, most = statistics.min_raw * times // by, -(-statistics.max_raw * times // by)
        return (least, most) if least >= -_MOST_US and most <= _MOST_US else (None, None)

    def _coding(self, group: int, index: int, encodings: set[str]) -> Coding:
        """Tell how a chunk with a dictionary is stored; of some writers, the names of encodings alone say it."""
        if not encodings - _DICTIONARY_ENCODINGS - _LEVEL_ENCODINGS:
            return Coding.DICTIONARY
        # parquet-mr encodes the dictionary page itself as PLAIN_DICTIONARY, so PLAIN stands for data pages. All other
        # writers list the encoding of the dictionary page, too.
        if "PLAIN_DICTIONARY" in encodings and (self.metadata.created_by or "").startswith("parquet-mr"):
            return Coding.MIXED
        by_dictionary = self._by_dictionary[group][index]
        return Coding.UNKNOWN if by_dictionary is None else Coding.DICTIONARY if by_dictionary else Coding.MIXED

    @cached_property
    def _by_dictionary(self) -> list[list[bool | None]]:
        return pages_by_dictionary(self.tail.footer)

    @cached_property
    def _time_units(self) -> list[tuple[int, int] | None]:
        """The unit of each column that is a date or a timestamp."""
        return [_time_unit(self.metadata.schema.column(index)) for index in range(self.metadata.num_columns)]


def _time_unit(column: pq.ColumnSchema) -> tuple[int, int] | None:
    logical = column.logical_type
    if logical.type == "DATE":
        return _DAY
    return _UNITS.get(json.loads(logical.to_json())["timeUnit"]) if logical.type == "TIMESTAMP" else None


def _groups(metadata: pq.FileMetaData, chunks: tuple[Chunk, ...]) -> Iterator[RowGroup]:
    compressed = [0] * metadata.num_row_groups
    for chunk in chunks:
        compressed[chunk.group] += chunk.compressed
    for index, size in enumerate(compressed):
        group = metadata.row_group(index)
        yield RowGroup(group.num_rows, size, group.total_byte_size)


def _key_values(metadata: pq.FileMetaData) -> Iterator[tuple[str, str]]:
    for key, value in (metadata.metadata or {}).items():
        name = key.decode(errors="replace")
        if name not in _SCHEMA_KEYS:
            yield name, value.decode(errors="replace")
