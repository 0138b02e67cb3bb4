"""The footers of a version's files together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.direct_lake.footers.facts import RowGroup

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
