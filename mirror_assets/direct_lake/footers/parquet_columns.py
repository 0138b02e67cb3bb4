"""Which column of the table a column of its Parquet files belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.delta.actions import Metadata
from mirror_assets.delta.schema import Field, Schema, parse_schema
from mirror_assets.direct_lake.errors import ColumnUnknown
from mirror_assets.direct_lake.footers.facts import Coding, Footers

# Columns that Delta itself puts into files of tables with row tracking, by the properties that name them.
_OWN = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
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
        """Those of the table with this metadata. Raises SchemaUnreadable."""
        named = (metadata.configuration.get(name) for name in _OWN)
        return cls(parse_schema(metadata.schema_string), frozenset(name for name in named if name))

    def require(self, columns: Sequence[str]) -> None:
        """Raises ColumnUnknown for the first that is no column of the table, in exactly this spelling."""
        for name in columns:
            if self.schema.field(name) is None:
                raise ColumnUnknown(name, tuple(field.name for field in self.schema.fields))

    def column(self, path: str) -> str | None:
        """The table's column that the Parquet column belongs to; None for one that the table doesn't have."""
        way = _way(path, self.schema.fields)
        return way[0] if way else None

    def label(self, path: str) -> str:
        """The Parquet column by the table's names, as far as it has any."""
        return ".".join(_way(path, self.schema.fields) or (path,))

    def is_dropped(self, path: str) -> bool:
        """Whether it is still in files, but neither in the table nor one of Delta's own (row ids)."""
        return path not in self.own and self.column(path) is None


def _way(path: str, fields: Sequence[Field]) -> tuple[str, ...] | None:
    """The names of the fields that the path leads through, None when it leads nowhere; names may have dots themselves.

    How writers name the inside of lists and maps varies, so that is left as it is.
    """
    for field in fields:
        name = field.physical_name or field.name
        inside = path[len(name) + 1 :]
        if path == name:
            return (field.name,)
        if path.startswith(f"{name}."):
            way = _way(inside, field.children) if field.type.startswith("struct<") else (inside,)
            if way is not None:
                return (field.name, *way)
    return None


# Of a text's length in a dictionary page.
_LENGTH_BYTES = 4


@dataclass(frozen=True)
class Bounds:
    """There are at least and at most so many different values, nulls apart (reference `direct-lake` §2.5).

    Among the rows stored, hidden ones included: the largest dictionary of a row group is a lower bound, all together
    are an upper one; without a dictionary, each value may differ. Arrow's C++ writer keeps dictionaries as it gets
    them, with values that no row has, so that those of its files are no lower bound.
    """

    least: int
    most: int


@dataclass(frozen=True)
class ParquetColumn:
    """A leaf column over all files; `path` is joined by dots, bytes are sums.

    `values` counts nulls, too; `nulls` is None when a file doesn't tell. `codings` counts column chunks by how they are
    stored. `bounds` and `dictionary_bytes` (uncompressed) are None when dictionaries were not looked at.
    `longest_bytes`: no text is longer; None for what is no text. `least_us` and `most_us` bound dates and timestamps in
    microseconds since 1970; None when a row group with values doesn't tell.
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
    """The columns of all files, in the order in which they come up."""
    told = _derived(footers.chunks, _keeps_unused(footers)).group_by("column", use_threads=False).aggregate(_AGGREGATES)
    return tuple(_column(row, dictionaries=footers.dictionaries) for row in told.to_pylist())


class _Told(TypedDict):
    """A row of the aggregate."""

    column: str
    physical_type_distinct: list[str]
    encodings_distinct: list[str]
    values_sum: int
    nulls_sum: int | None
    compressed_sum: int
    uncompressed_sum: int
    low_max: int
    high_sum: int
    dictionary_bytes_sum: int | None
    longest_max: int | None
    timeless_any: bool
    least_us_min: int | None
    most_us_max: int | None
    dictionary_sum: int
    mixed_sum: int
    plain_sum: int
    unknown_sum: int


_EVERY = pc.ScalarAggregateOptions(skip_nulls=False)
_AGGREGATES = [
    ("physical_type", "distinct"),
    ("encodings", "distinct"),
    ("values", "sum"),
    ("nulls", "sum", _EVERY),
    *((name, "sum") for name in ("compressed", "uncompressed", "high", "dictionary_bytes")),
    *((name, "max") for name in ("low", "longest", "most_us")),
    ("timeless", "any"),
    ("least_us", "min"),
    *((coding.value, "sum") for coding in Coding),
]


def _keeps_unused(footers: Footers) -> pa.Array:
    """Per chunk, whether its dictionary may have values that no row has."""
    return pc.take(pc.starts_with(footers.table["created_by"], "parquet-cpp"), footers.chunks["file"])


def _derived(chunks: pa.Table, keeps_unused: pa.Array) -> pa.Table:
    """The chunks with what each says of how many different values there are, and of how long they are."""
    shown = pc.subtract(chunks["values"], pc.coalesce(chunks["nulls"], 0))
    whole = pc.and_(pc.equal(chunks["coding"], Coding.DICTIONARY.value), pc.is_valid(chunks["entries"]))
    in_dictionary = pc.subtract(chunks["dictionary_bytes"], pc.multiply(chunks["entries"], _LENGTH_BYTES))
    longest = pc.if_else(whole, in_dictionary, chunks["uncompressed"])
    any_value = pc.min_element_wise(pc.subtract(chunks["values"], pc.coalesce(chunks["nulls"], chunks["values"])), 1)
    is_text = pc.equal(chunks["physical_type"], "BYTE_ARRAY")
    derived = {
        "low": pc.if_else(pc.or_(keeps_unused, pc.is_null(chunks["entries"])), any_value, chunks["entries"]),
        "high": pc.if_else(whole, chunks["entries"], shown),
        "longest": pc.if_else(is_text, longest, pa.scalar(None, pa.int64())),
        "timeless": pc.and_(pc.is_null(chunks["least_us"]), pc.greater(shown, 0)),
        **{coding.value: pc.equal(chunks["coding"], coding.value) for coding in Coding},
    }
    for name, column in derived.items():
        chunks = chunks.append_column(name, column)
    return chunks


def _column(told: _Told, *, dictionaries: bool) -> ParquetColumn:
    encodings = {name for chunk in told["encodings_distinct"] for name in chunk.split(",")}
    return ParquetColumn(
        path=told["column"],
        physical_types=tuple(told["physical_type_distinct"]),
        values=told["values_sum"],
        nulls=told["nulls_sum"],
        compressed=told["compressed_sum"],
        uncompressed=told["uncompressed_sum"],
        encodings=tuple(sorted(encodings)),
        codings=_codings(told),
        bounds=Bounds(told["low_max"], told["high_sum"]) if dictionaries else None,
        dictionary_bytes=(told["dictionary_bytes_sum"] or 0) if dictionaries else None,
        longest_bytes=told["longest_max"],
        least_us=None if told["timeless_any"] else told["least_us_min"],
        most_us=None if told["timeless_any"] else told["most_us_max"],
    )


def _codings(told: _Told) -> dict[Coding, int]:
    counted = {
        Coding.DICTIONARY: told["dictionary_sum"],
        Coding.MIXED: told["mixed_sum"],
        Coding.PLAIN: told["plain_sum"],
        Coding.UNKNOWN: told["unknown_sum"],
    }
    return {coding: chunks for coding, chunks in counted.items() if chunks}
