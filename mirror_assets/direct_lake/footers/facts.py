"""The facts of one Parquet file, and the Arrow types that many of them are kept as."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class Coding(str, Enum):
    """How the values of a column chunk are stored (reference `direct-lake` §2.5)."""

    DICTIONARY = "dictionary"  # all data pages
    MIXED = "mixed"  # a dictionary that grew too large, and pages behind it that do without
    PLAIN = "plain"  # no dictionary
    UNKNOWN = "unknown"  # a dictionary, and no word of the pages behind it


# Tuples, for Arrow takes them as rows as they are.


class RowGroup(NamedTuple):
    """One row group; bytes are those of its column chunks."""

    rows: int
    compressed: int
    uncompressed: int


class Chunk(NamedTuple):
    """One column of one row group.

    `column` is the path of the leaf, joined by dots. `values` counts nulls, too; `nulls` is None without statistics.
    `entries` and `dictionary_bytes` (uncompressed) are the dictionary's, None without one or where it was not looked
    at. `least_us` and `most_us` bound dates and timestamps, in microseconds since 1970; None for all other types, and
    where the writer left them out, as Spark does for its INT96 timestamps, or they are more than 292,000 years away.
    """

    group: int
    column: str
    physical_type: str
    values: int
    nulls: int | None
    compressed: int
    uncompressed: int
    encodings: str
    coding: str
    entries: int | None
    dictionary_bytes: int | None
    least_us: int | None
    most_us: int | None


class Footer(NamedTuple):
    """One file. `dictionaries` says whether its dictionary pages were looked at.

    `key_values` are the footer's, but for copies of the schema.
    """

    path: str
    bytes: int
    rows: int
    created_by: str
    dictionaries: bool
    key_values: tuple[tuple[str, str], ...]
    groups: tuple[RowGroup, ...]
    chunks: tuple[Chunk, ...]


GROUP_TYPE = pa.struct([(name, pa.int64()) for name in RowGroup._fields])
CHUNK_TYPE = pa.struct(
    [
        ("group", pa.int32()),
        ("column", pa.string()),
        ("physical_type", pa.string()),
        ("values", pa.int64()),
        ("nulls", pa.int64()),
        ("compressed", pa.int64()),
        ("uncompressed", pa.int64()),
        ("encodings", pa.string()),
        ("coding", pa.string()),
        ("entries", pa.int64()),
        ("dictionary_bytes", pa.int64()),
        ("least_us", pa.int64()),
        ("most_us", pa.int64()),
    ]
)
FOOTER_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
        ("created_by", pa.string()),
        ("dictionaries", pa.bool_()),
        ("key_values", pa.map_(pa.string(), pa.string())),
        ("groups", pa.list_(GROUP_TYPE)),
        ("chunks", pa.list_(CHUNK_TYPE)),
    ]
)


def as_table(footers: list[Footer]) -> pa.Table:
    """The footers as a table, a row each."""
    columns = zip(*footers, strict=True) if footers else ((),) * len(FOOTER_SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, FOOTER_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=FOOTER_SCHEMA)


_VORDER, _VORDER_LEVEL = "com.microsoft.parquet.vorder.enabled", "com.microsoft.parquet.vorder.level"


@dataclass(frozen=True)
class FileFacts:
    """One file; `rows` are those stored in it, hidden ones included.

    `vorder` is whether its footer says that it is V-Ordered, the only trustworthy sign (reference `direct-lake` §2.4).
    """

    path: str
    bytes: int
    rows: int
    created_by: str
    vorder: bool
    vorder_level: str | None
    groups: tuple[RowGroup, ...]
    key_values: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Footers:
    """The facts of many files as a table of FOOTER_SCHEMA, a row per file."""

    table: pa.Table

    @cached_property
    def files(self) -> tuple[FileFacts, ...]:
        """The files, in the order in which they were asked for."""
        columns = ("path", "bytes", "rows", "created_by", "key_values", "groups")
        return tuple(_file(*(row[name] for name in columns)) for row in self.table.select(columns).to_pylist())

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The row groups of all files, in their order."""
        return tuple(group for file in self.files for group in file.groups)

    @cached_property
    def chunks(self) -> pa.Table:
        """The column chunks of all files: a column per field of Chunk, and `file`, its index in `files`."""
        chunks = self.table["chunks"].combine_chunks()
        flat = pa.Table.from_struct_array(pc.list_flatten(chunks))
        return flat.append_column("file", pc.list_parent_indices(chunks))

    @property
    def dictionaries(self) -> bool:
        """Whether the dictionary pages of all files were looked at."""
        return bool(pc.all(self.table["dictionaries"], min_count=0).as_py())


def _file(
    path: str,
    size: int,
    rows: int,
    created_by: str,
    key_values: list[tuple[str, str]],
    groups: list[dict[str, int]],
) -> FileFacts:
    told = dict(key_values)
    return FileFacts(
        path=path,
        bytes=size,
        rows=rows,
        created_by=created_by,
        vorder=told.get(_VORDER, "").lower() == "true",
        vorder_level=told.get(_VORDER_LEVEL),
        groups=tuple(RowGroup(**group) for group in groups),
        key_values=tuple(key_values),
    )
