"""From the end of a Parquet file to its facts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow.parquet as pq

from mirror_assets.direct_lake.footers.facts import Chunk, Coding, Footer, RowGroup
from mirror_assets.direct_lake.footers.pages import (
    DICTIONARY_HEADER_BYTES,
    DictionaryHeader,
    dictionary_header,
    pages_by_dictionary,
)
from mirror_assets.direct_lake.footers.tail import Tail

_DICTIONARY_ENCODINGS = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_LEVEL_ENCODINGS = {"RLE", "BIT_PACKED"}
# Copies of the schema, kilobytes a file.
_SCHEMA_KEYS = {"ARROW:schema", "pandas", "org.apache.spark.sql.parquet.row.metadata", "parquet.avro.schema"}
# Microseconds in a unit, as a fraction.
_DAY = (86_400_000_000, 1)
_MOST_US = 2**63 - 1
_UNITS = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}


def parse_footer(path: str, size: int, tail: Tail, *, dictionaries: bool) -> Footer:
    """The facts of the file of `size` bytes; `dictionaries`: also the headers of its dictionary pages.

    Raises ValueError when the file is not what Parquet writes.
    """
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
class _Chunks:
    metadata: pq.FileMetaData
    tail: Tail
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
        header = self._header(begin) if has_dictionary and self.dictionaries else None
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
        unit = self._time_units.get(index)
        if unit is None or statistics is None or not statistics.has_min_max:
            return None, None
        times, by = unit
        least, most = statistics.min_raw * times // by, -(-statistics.max_raw * times // by)
        return (least, most) if least >= -_MOST_US and most <= _MOST_US else (None, None)

    def _coding(self, group: int, index: int, encodings: set[str]) -> Coding:
        """How a chunk with a dictionary is stored; the encodings' names alone tell it of the files of some writers."""
        if not encodings - _DICTIONARY_ENCODINGS - _LEVEL_ENCODINGS:
            return Coding.DICTIONARY
        # Its dictionary pages are PLAIN_DICTIONARY themselves, so PLAIN stands for data pages. All others list the
        # encoding of the dictionary page, too.
        if "PLAIN_DICTIONARY" in encodings and (self.metadata.created_by or "").startswith("parquet-mr"):
            return Coding.MIXED
        told = self._by_dictionary[group][index]
        return Coding.UNKNOWN if told is None else Coding.DICTIONARY if told else Coding.MIXED

    def _header(self, offset: int) -> DictionaryHeader | None:
        return dictionary_header(self.tail.at(offset, DICTIONARY_HEADER_BYTES))

    @cached_property
    def _by_dictionary(self) -> list[list[bool | None]]:
        return pages_by_dictionary(self.tail.footer)

    @cached_property
    def _time_units(self) -> dict[int, tuple[int, int]]:
        """The units of the columns that are dates and timestamps."""
        schema = self.metadata.schema
        units = {index: _time_unit(schema.column(index)) for index in range(self.metadata.num_columns)}
        return {index: unit for index, unit in units.items() if unit is not None}


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
