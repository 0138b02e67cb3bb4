"""What Parquet's own structures say of pages, and pyarrow doesn't hand on (Parquet's `parquet.thrift`).

Reference `direct-lake` §2.5: pyarrow has no `encoding_stats`, and no headers of dictionary pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mirror_assets.direct_lake.footers.thrift import CompactReader

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
