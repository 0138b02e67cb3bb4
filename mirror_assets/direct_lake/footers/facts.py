"""The facts of Parquet files: tuples as they are read, and Arrow tables as they are kept and added up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

_VORDER = "com.microsoft.parquet.vorder.enabled"


class Coding(str, Enum):
    """How the values of a column chunk are stored (reference `direct-lake` §2.5)."""

    DICTIONARY = "dictionary"  # all data pages
    MIXED = "mixed"  # a dictionary that grew too large, and plain pages after it
    PLAIN = "plain"  # no dictionary
    UNKNOWN = "unknown"  # a dictionary, and pages that the footer doesn't describe


class RowGroup(NamedTuple):
    """One row group; bytes are those of its column chunks."""

    rows: int
    compressed: int
    uncompressed: int


class Chunk(NamedTuple):
    """One column of one row group.

    `column` is the path of the leaf, joined by dots. `values` counts nulls, too; `nulls` is None without statistics.
    `entries` and `dictionary_bytes` (uncompressed) are the dictionary's, None without one or where it was not read.
    `least_us` and `most_us` bound dates and timestamps, in microseconds since 1970; None for all other types, and
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
    """One file. `dictionaries`: its dictionary pages were read, too. `key_values`: without copies of the schema."""

    path: str
    bytes: int
    rows: int
    created_by: str
    dictionaries: bool
    key_values: tuple[tuple[str, str], ...]
    groups: tuple[RowGroup, ...]
    chunks: tuple[Chunk, ...]


# Arrow takes tuples as rows as they are; all numbers of a chunk but its group's are 64 bits wide.
_CHUNK_TYPES = {"group": pa.int32()} | dict.fromkeys(("column", "physical_type", "encodings", "coding"), pa.string())
FOOTER_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
        ("created_by", pa.string()),
        ("dictionaries", pa.bool_()),
        ("key_values", pa.map_(pa.string(), pa.string())),
        ("groups", pa.list_(pa.struct([(name, pa.int64()) for name in RowGroup._fields]))),
        ("chunks", pa.list_(pa.struct([(name, _CHUNK_TYPES.get(name, pa.int64())) for name in Chunk._fields]))),
    ]
)


def as_table(footers: list[Footer]) -> pa.Table:
    """Return the footers as a table of FOOTER_SCHEMA, a row each."""
    columns = zip(*footers, strict=True) if footers else ((),) * len(FOOTER_SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, FOOTER_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=FOOTER_SCHEMA)


@dataclass(frozen=True)
class FileFacts:
    """One file; `rows` are those stored in it, hidden ones included.

    `vorder`: its footer says that it is V-Ordered, the only trustworthy sign (reference `direct-lake` §2.4).
    """

    path: str
    bytes: int
    rows: int
    created_by: str
    vorder: bool
    groups: tuple[RowGroup, ...]


@dataclass(frozen=True)
class Footers:
    """The facts of many files as a table of FOOTER_SCHEMA, a row per file."""

    table: pa.Table

    @cached_property
    def files(self) -> tuple[FileFacts, ...]:
        """The files, in the order in which they were asked for."""
        rows = self.table.drop_columns(["chunks", "dictionaries"]).to_pylist()
        return tuple(
            FileFacts(
                vorder=dict(row.pop("key_values")).get(_VORDER, "").lower() == "true",
                groups=tuple(RowGroup(**group) for group in row.pop("groups")),
                **row,
            )
            for row in rows
        )

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
        """Whether the dictionary pages of all files were read."""
        return bool(pc.all(self.table["dictionaries"], min_count=0).as_py())
