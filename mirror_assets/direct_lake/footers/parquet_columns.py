"""The columns of many Parquet files, each over all of them, and which column of the table each belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.delta.actions import Metadata
from mirror_assets.delta.schema import Field, Schema, parse_schema
from mirror_assets.direct_lake.errors import column_unknown
from mirror_assets.direct_lake.footers.facts import Coding, Footers

# Columns that Delta itself puts into files of tables with row tracking, by the properties that name them.
_OWN = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)
# Of a text's length in a dictionary page.
_LENGTH_BYTES = 4


@dataclass(frozen=True)
class Bounds:
    """The least and the most different values that a column can have, nulls apart (reference `direct-lake` §2.5).

    Of the rows stored, hidden ones included: the largest dictionary of a row group is a lower bound, all together
    are an upper one; without a dictionary, each value may differ. Arrow's C++ writer keeps dictionaries as it gets
    them, with values that no row has, so that those of its files are no lower bound.
    """

    least: int
    most: int


@dataclass(frozen=True)
class ParquetColumn:
    """A leaf column over all files; `path` is joined by dots, bytes are sums.

    `values` counts nulls, too; `nulls` is None when a file has no statistics. `codings` counts column chunks by how
    they are stored. `bounds` and `dictionary_bytes` (uncompressed) are None when dictionaries were not read.
    `longest_bytes`: no text is longer; None for columns without text. `least_us` and `most_us` bound dates and
    timestamps in microseconds since 1970; None when a row group with values has no statistics.
    """

    path: str
    physical_types: tuple[str, ...]
    values: int
    nulls: int | None
    compressed: int
    uncompressed: int
    encodings: tuple[str, ...]
    codings: Mapping[Coding, int]
    bounds: Bounds | None
    dictionary_bytes: int | None
    longest_bytes: int | None
    least_us: int | None
    most_us: int | None


def parquet_columns(footers: Footers) -> tuple[ParquetColumn, ...]:
    """Add up the columns of all files, in the order in which they come up."""
    chunks = _with_bounds(footers.chunks, _keeps_unused(footers))
    rows = chunks.group_by("column", use_threads=False).aggregate(_AGGREGATES).to_pylist()
    return tuple(_column(row, dictionaries=footers.dictionaries) for row in rows)


_AGGREGATES = [
    ("physical_type", "distinct"),
    ("encodings", "distinct"),
    ("values", "sum"),
    ("nulls", "sum", pc.ScalarAggregateOptions(skip_nulls=False)),
    *((name, "sum") for name in ("compressed", "uncompressed", "high", "dictionary_bytes")),
    *((name, "max") for name in ("low", "longest", "most_us")),
    ("timeless", "any"),
    ("least_us", "min"),
    *((coding.value, "sum") for coding in Coding),
]


def _keeps_unused(footers: Footers) -> pa.Array:
    """Per chunk, whether its dictionary may have values that no row has."""
    return pc.take(pc.starts_with(footers.table["created_by"], "parquet-cpp"), footers.chunks["file"])


def _with_bounds(chunks: pa.Table, keeps_unused: pa.Array) -> pa.Table:
    """Add each chunk's bounds on its number of different values, and on their length."""
    shown = pc.subtract(chunks["values"], pc.coalesce(chunks["nulls"], 0))
    whole = pc.and_(pc.equal(chunks["coding"], Coding.DICTIONARY.value), pc.is_valid(chunks["entries"]))
    in_dictionary = pc.subtract(chunks["dictionary_bytes"], pc.multiply(chunks["entries"], _LENGTH_BYTES))
    longest = pc.if_else(whole, in_dictionary, chunks["uncompressed"])
    any_value = pc.min_element_wise(pc.subtract(chunks["values"], pc.coalesce(chunks["nulls"], chunks["values"])), 1)
    is_text = pc.equal(chunks["physical_type"], "BYTE_ARRAY")
    added = {
        "low": pc.if_else(pc.or_(keeps_unused, pc.is_null(chunks["entries"])), any_value, chunks["entries"]),
        "high": pc.if_else(whole, chunks["entries"], shown),
        "longest": pc.if_else(is_text, longest, pa.scalar(None, pa.int64())),
        "timeless": pc.and_(pc.is_null(chunks["least_us"]), pc.greater(shown, 0)),
        **{coding.value: pc.equal(chunks["coding"], coding.value) for coding in Coding},
    }
    for name, column in added.items():
        chunks = chunks.append_column(name, column)
    return chunks


def _column(row: dict[str, Any], *, dictionaries: bool) -> ParquetColumn:
    timeless = row["timeless_any"]
    return ParquetColumn(
        path=row["column"],
        physical_types=tuple(row["physical_type_distinct"]),
        values=row["values_sum"],
        nulls=row["nulls_sum"],
        compressed=row["compressed_sum"],
        uncompressed=row["uncompressed_sum"],
        encodings=tuple(sorted({name for chunk in row["encodings_distinct"] for name in chunk.split(",")})),
        codings={coding: row[f"{coding.value}_sum"] for coding in Coding if row[f"{coding.value}_sum"]},
        bounds=Bounds(row["low_max"], row["high_sum"]) if dictionaries else None,
        dictionary_bytes=(row["dictionary_bytes_sum"] or 0) if dictionaries else None,
        longest_bytes=row["longest_max"],
        least_us=None if timeless else row["least_us_min"],
        most_us=None if timeless else row["most_us_max"],
    )


@dataclass(frozen=True)
class ColumnNames:
    """The columns of a version of a table, looked up by the paths of Parquet columns (joined by dots).

    Parquet files name columns by their physical names (Delta's protocol, "Column Mapping"). So do files that Delta
    writes in the mode `id`; of files that came from another format's table nothing can be said in that mode.
    """

    schema: Schema
    own: frozenset[str] = frozenset()

    @classmethod
    def of(cls, metadata: Metadata) -> ColumnNames:
        """Return those of the table with this metadata. Raises SchemaUnreadable."""
        named = (metadata.configuration.get(name) for name in _OWN)
        return cls(parse_schema(metadata.schema_string), frozenset(name for name in named if name))

    def require(self, columns: Sequence[str]) -> None:
        """Raise SettingError for the first that is no column of the table, in exactly this spelling."""
        for name in columns:
            if self.schema.field(name) is None:
                known = ", ".join(field.name for field in self.schema.fields)
                raise column_unknown(name, known)

    def column(self, path: str) -> str | None:
        """Return the table's column that a Parquet column belongs to; None for one that the table doesn't have."""
        names = _names_along(path, self.schema.fields)
        return names[0] if names else None

    def label(self, path: str) -> str:
        """Return the Parquet column's path in the table's names, as far as it has any."""
        return ".".join(_names_along(path, self.schema.fields) or (path,))

    def is_dropped(self, path: str) -> bool:
        """Whether it is still in files, but neither in the table nor one of Delta's own (row ids)."""
        return path not in self.own and self.column(path) is None


def _names_along(path: str, fields: Sequence[Field]) -> tuple[str, ...] | None:
    """The names of the fields that the path leads through, None when it leads nowhere; names may have dots themselves.

    How writers name the inside of lists and maps varies, so that is left as it is.
    """
    for field in fields:
        name = field.physical_name or field.name
        inside = path[len(name) + 1 :]
        if path == name:
            return (field.name,)
        if path.startswith(f"{name}."):
            names = _names_along(inside, field.children) if field.type.startswith("struct<") else (inside,)
            if names is not None:
                return (field.name, *names)
    return None
