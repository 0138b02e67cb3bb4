"""Read what Parquet footers and page headers say and pyarrow doesn't hand on (reference `direct-lake` §2.5).

That is `encoding_stats` and the headers of dictionary pages. Both are structs in Thrift's compact protocol, with the
field numbers of Parquet's `parquet.thrift`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)

# Fields of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, PageEncodingStats, PageHeader, DictionaryPageHeader.
_ROW_GROUPS, _COLUMNS, _META_DATA, _ENCODING_STATS = 4, 1, 3, 13
_PAGE_TYPE, _ENCODING = 1, 2
_UNCOMPRESSED_SIZE, _DICTIONARY_HEADER, _ENTRIES = 2, 7, 1
_DATA_PAGES = (0, 3)  # of format version 1 and 2
_DICTIONARY_ENCODINGS = (2, 8)  # PLAIN_DICTIONARY and RLE_DICTIONARY

# A dictionary page's header is at most this long: four integers and a struct of three.
DICTIONARY_HEADER_BYTES = 64

_Value = TypeVar("_Value")


class DictionaryHeader(NamedTuple):
    """How many values a dictionary has, and how many bytes they take, uncompressed."""

    entries: int
    bytes: int


def dictionary_header(data: bytes) -> DictionaryHeader | None:
    """Read the header at the start of a page; None when the page is no dictionary. Raises ValueError."""
    reader = CompactReader(data)

    def entries() -> int | None:
        return reader.struct({_ENTRIES: reader.integer}).get(_ENTRIES)

    with _bounded(data):
        header = reader.struct({_UNCOMPRESSED_SIZE: reader.integer, _DICTIONARY_HEADER: entries})
    values = header.get(_DICTIONARY_HEADER)
    return None if values is None else DictionaryHeader(values, header.get(_UNCOMPRESSED_SIZE) or 0)


def pages_by_dictionary(footer: bytes) -> list[list[bool | None]]:
    """Tell, per row group and column chunk, whether all data pages are dictionary-encoded.

    None where the writer left `encoding_stats` out. Raises ValueError when the bytes are no footer.
    """
    reader = CompactReader(footer)

    def row_group() -> list[bool | None]:
        return reader.struct({_COLUMNS: lambda: reader.list_of(chunk)}).get(_COLUMNS, [])

    def chunk() -> bool | None:
        return reader.struct({_META_DATA: meta_data}).get(_META_DATA)

    def meta_data() -> bool | None:
        stats = reader.struct({_ENCODING_STATS: lambda: reader.list_of(page_encoding)}).get(_ENCODING_STATS, [])
        encodings = [found.get(_ENCODING) for found in stats if found.get(_PAGE_TYPE) in _DATA_PAGES]
        return all(encoding in _DICTIONARY_ENCODINGS for encoding in encodings) if encodings else None

    def page_encoding() -> dict[int, int]:
        return reader.struct({_PAGE_TYPE: reader.integer, _ENCODING: reader.integer})

    with _bounded(footer):
        return reader.struct({_ROW_GROUPS: lambda: reader.list_of(row_group)}).get(_ROW_GROUPS, [])


@contextmanager
def _bounded(data: bytes) -> Iterator[None]:
    try:
        yield
    except IndexError as error:
        raise ValueError(f"it ends after {len(data)} bytes, amid a value") from error


class CompactReader:
    """Read one value after the other. Raises ValueError for what is no Thrift, IndexError where the bytes end."""

    def __init__(self, data: bytes) -> None:
        """Begin at the first byte."""
        self._data = data
        self._at = 0

    def struct(self, wanted: Mapping[int, Callable[[], _Value]]) -> dict[int, _Value]:
        """Read a struct to its end: the wanted fields by their readers, all others skipped."""
        found: dict[int, _Value] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            if number in wanted:
                found[number] = wanted[number]()
            else:
                self.skip(head & 0x0F)
        return found

    def list_of(self, item: Callable[[], _Value]) -> list[_Value]:
        """Read a list whose items this reads."""
        size, _ = self._items()
        return [item() for _ in range(size)]

    def integer(self) -> int:
        """Read an integer of 16, 32 or 64 bits."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int) -> None:
        """Skip a field's value of this type."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BINARY:
            size = self._varint()
            self._at += size
        elif kind == _STRUCT:
            self.struct({})
        elif kind in (_LIST, _SET):
            self._skip_items(*self._items())
        elif kind in (_BYTE, _DOUBLE):
            self._at += 1 if kind == _BYTE else 8
        elif kind == _MAP:
            self._skip_map()
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(f"type {kind} at byte {self._at} is none of Thrift's")

    def _items(self) -> tuple[int, int]:
        """Return how many items a list has, and their type. Raises IndexError."""
        head = self._byte()
        size = head >> 4
        return self._fitting(self._varint() if size == 15 else size), head & 0x0F

    def _fitting(self, size: int) -> int:
        """Return the number of items if so many can follow: an item takes a byte at least. Raises IndexError."""
        if size > len(self._data) - self._at:
            raise IndexError(f"{size} items at byte {self._at}, of {len(self._data)} bytes")
        return size

    def _skip_items(self, size: int, kind: int) -> None:
        for _ in range(size):
            # A boolean field's type is its value; in a list, a boolean takes a byte.
            self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind)

    def _skip_map(self) -> None:
        size = self._fitting(self._varint())
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
