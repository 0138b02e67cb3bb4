"""Read Thrift's compact protocol, and from it what Parquet footers and page headers say and pyarrow doesn't."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)


class CompactReader:
    """Reads one value after the other. Raises ValueError for what is no Thrift, IndexError where the bytes end."""

    def __init__(self, data: bytes) -> None:
        """Stand before the first byte."""
        self._data = data
        self._at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Id and type of every field of a struct; each value is read, or skipped, before the next is asked for."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, head & 0x0F

    def items(self) -> tuple[int, int]:
        """How many items a list has, and their type."""
        head = self._byte()
        size = head >> 4
        return self._varint() if size == 15 else size, head & 0x0F

    def integer(self) -> int:
        """An integer of 16, 32 or 64 bits."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int) -> None:
        """Go behind a field's value of this type."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BINARY:
            size = self._varint()
            self._at += size
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            self._skip_items(*self.items())
        elif kind in (_BYTE, _DOUBLE):
            self._at += 1 if kind == _BYTE else 8
        elif kind == _MAP:
            self._skip_map()
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(f"type {kind} at byte {self._at} is none of Thrift's")

    def _skip_items(self, size: int, kind: int) -> None:
        for _ in range(size):
            # A boolean is told by its field's type, but takes a byte in a list.
            self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind)

    def _skip_map(self) -> None:
        size = self._varint()
        kinds = self._byte() if size else 0
        for _ in range(size):
            self._skip_items(1, kinds >> 4)
            self._skip_items(1, kinds & 0x0F)

    def _varint(self) -> int:
        """The hot spot of a report, so it has no calls."""
        data, at = self._data, self._at
        byte = data[at]
        at += 1
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        self._at = at
        return value

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte


# Fields of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, PageEncodingStats, PageHeader, DictionaryPageHeader.
_ROW_GROUPS, _COLUMNS, _META_DATA, _ENCODING_STATS = 4, 1, 3, 13
_PAGE_TYPE, _ENCODING = 1, 2
_UNCOMPRESSED_SIZE, _DICTIONARY_HEADER, _ENTRIES = 2, 7, 1
_DATA_PAGES = (0, 3)  # of format version 1 and 2
_DICTIONARY_ENCODINGS = (2, 8)  # PLAIN_DICTIONARY and RLE_DICTIONARY

# A dictionary page's header is at most this long: four integers and a struct of three.
DICTIONARY_HEADER_BYTES = 64


class DictionaryHeader(NamedTuple):
    """How many values a dictionary has, and how many bytes they take, uncompressed."""

    entries: int
    bytes: int


def dictionary_header(data: bytes) -> DictionaryHeader | None:
    """The header that the page begins with, or None when it is no dictionary page's. Raises ValueError."""
    with _whole(data):
        return _dictionary_header(CompactReader(data))


def _dictionary_header(reader: CompactReader) -> DictionaryHeader | None:
    size, entries = 0, None
    for field, kind in reader.fields():
        if field == _UNCOMPRESSED_SIZE:
            size = reader.integer()
        elif field == _DICTIONARY_HEADER:
            entries = _only(reader, _ENTRIES)
        else:
            reader.skip(kind)
    return None if entries is None else DictionaryHeader(entries, size)


def pages_by_dictionary(footer: bytes) -> list[list[bool | None]]:
    """Per row group and column chunk: whether all data pages hold numbers of dictionary entries.

    None where the writer left that out. Raises ValueError when the bytes are no footer.
    """
    with _whole(footer):
        return _groups(CompactReader(footer))


def _groups(reader: CompactReader) -> list[list[bool | None]]:
    for field, kind in reader.fields():
        if field == _ROW_GROUPS:
            return [_group(reader) for _ in range(reader.items()[0])]
        reader.skip(kind)
    return []


def _group(reader: CompactReader) -> list[bool | None]:
    chunks: list[bool | None] = []
    for field, kind in reader.fields():
        if field == _COLUMNS:
            chunks = [_chunk(reader) for _ in range(reader.items()[0])]
        else:
            reader.skip(kind)
    return chunks


def _chunk(reader: CompactReader) -> bool | None:
    told = None
    for field, kind in reader.fields():
        if field == _META_DATA:
            told = _meta_data(reader)
        else:
            reader.skip(kind)
    return told


def _meta_data(reader: CompactReader) -> bool | None:
    told = None
    for field, kind in reader.fields():
        if field == _ENCODING_STATS:
            counted = [_page_encoding(reader) for _ in range(reader.items()[0])]
            data_pages = [encoding for page, encoding in counted if page in _DATA_PAGES]
            told = all(encoding in _DICTIONARY_ENCODINGS for encoding in data_pages) if data_pages else None
        else:
            reader.skip(kind)
    return told


def _page_encoding(reader: CompactReader) -> tuple[int, int]:
    page = encoding = -1
    for field, kind in reader.fields():
        if field == _PAGE_TYPE:
            page = reader.integer()
        elif field == _ENCODING:
            encoding = reader.integer()
        else:
            reader.skip(kind)
    return page, encoding


@contextmanager
def _whole(data: bytes) -> Iterator[None]:
    try:
        yield
    except IndexError as error:
        raise ValueError(f"it ends after {len(data)} bytes, amid a value") from error


def _only(reader: CompactReader, wanted: int) -> int | None:
    """The one integer of a struct that is wanted."""
    found = None
    for field, kind in reader.fields():
        if field == wanted:
            found = reader.integer()
        else:
            reader.skip(kind)
    return found
