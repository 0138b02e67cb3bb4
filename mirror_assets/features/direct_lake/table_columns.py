"""The columns of a table's Parquet files: sizes, encodings, and the table columns they belong to.

And the columns that Direct Lake can't load, or perhaps can't, by the schema and the footers: rules of reference
`direct-lake` §1.3 (Microsoft, Direct Lake overview, considerations and limitations).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow.compute as pc

from mirror_assets.column_types import Family
from mirror_assets.features.direct_lake.footers import Footers
from mirror_assets.source.actions import LiveFile, Metadata
from mirror_assets.source.schema import Field, Schema, parse_schema
from mirror_assets.spark_names import quoted, table_at

# Columns that Delta itself adds to files of tables with row tracking, by the properties that name them.
_DELTAS_OWN = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)


def percent(part: int, whole: int) -> float:
    """Return the part in percent of the whole; 0 if the whole is 0."""
    return 100 * part / whole if whole else 0.0


@dataclass(frozen=True)
class ParquetColumn:
    """A leaf column over all files. `path` is joined by dots, bytes are sums, `share` is the percentage of all bytes.

    `name` is its table column; None for dropped columns, and Delta's own. `label` is its path in the table's names.
    `is_dropped`: only the files still have it. Of its column chunks, `without_dictionary_percent` are known to have
    values without a dictionary. No text is longer than `longest_bytes`; None for other columns.
    """

    name: str | None
    label: str
    path: str
    is_dropped: bool
    share: float
    physical_types: tuple[str, ...]
    compressed: int
    uncompressed: int
    without_dictionary_percent: float
    longest_bytes: int | None


def parquet_columns(footers: Footers, names: ColumnNames) -> tuple[ParquetColumn, ...]:
    """Return the columns of the files, the largest first."""
    sizes = ("compressed", "uncompressed", "plain", "chunks")
    rows = footers.columns.group_by("column", use_threads=False).aggregate(
        [("physical_type", "distinct"), *((name, "sum") for name in sizes), ("longest", "max")]
    )
    total = pc.sum(footers.columns["compressed"]).as_py() or 0
    columns = (
        ParquetColumn(
            name=names.column(row["column"]),
            label=names.label(row["column"]),
            path=row["column"],
            is_dropped=names.is_dropped(row["column"]),
            share=percent(row["compressed_sum"], total),
            physical_types=tuple(row["physical_type_distinct"]),
            compressed=row["compressed_sum"],
            uncompressed=row["uncompressed_sum"],
            without_dictionary_percent=percent(row["plain_sum"], row["chunks_sum"]),
            longest_bytes=row["longest_max"] if "BYTE_ARRAY" in row["physical_type_distinct"] else None,
        )
        for row in rows.to_pylist()
    )
    return tuple(sorted(columns, key=lambda column: -column.compressed))


@dataclass(frozen=True)
class ColumnNames:
    """Finds the table column of a Parquet column, by its path (joined by dots).

    Parquet files use the physical names of columns (Delta's protocol, "Column Mapping"), in the mode `id` also, unless
    the files were converted from another format.
    """

    schema: Schema
    deltas_own: frozenset[str] = frozenset()

    @classmethod
    def of(cls, metadata: Metadata) -> ColumnNames:
        """Return the names of the table with this metadata. Raises SCHEMA_UNREADABLE."""
        named = (metadata.configuration.get(name) for name in _DELTAS_OWN)
        return cls(parse_schema(metadata.schema_string), frozenset(name for name in named if name))

    def column(self, path: str) -> str | None:
        """Return the table column that a Parquet column belongs to; None for one that the table doesn't have."""
        names = _names_along(path, self.schema.fields)
        return names[0] if names else None

    def label(self, path: str) -> str:
        """Return the Parquet column's path in the table's names, as far as it has any."""
        return ".".join(_names_along(path, self.schema.fields) or (path,))

    def is_dropped(self, path: str) -> bool:
        """Whether files have the column, but the table doesn't, and it isn't Delta's own."""
        return path not in self.deltas_own and self.column(path) is None


def _names_along(path: str, fields: Sequence[Field]) -> tuple[str, ...] | None:
    """Return the names of the fields that the path leads through; None if no field matches. Names may have dots.

    Writers name the inside of lists and maps differently, so it is returned unchanged.
    """
    for field_ in fields:
        name = field_.physical_name or field_.name
        inside = path[len(name) + 1 :]
        if path == name:
            return (field_.name,)
        if path.startswith(f"{name}."):
            names = _names_along(inside, field_.children) if field_.type.startswith("struct<") else (inside,)
            if names is not None:
                return (field_.name, *names)
    return None


def dropped_bytes(files: Sequence[LiveFile], footers: Footers) -> dict[str, int]:
    """Return the compressed bytes of dropped columns, by file; files without any are omitted."""
    return {files[at].path: int(footers.dropped[at]) for at in map(int, footers.dropped.nonzero()[0])}


# Unicode characters; each takes at least one byte.
MOST_CHARACTERS = 32_764

_DECLARED_LENGTH = re.compile(r"(?:var)?char\((\d+)\)")


class Certainty(str, Enum):
    """How certain it is that the column can't be loaded, or that queries fail."""

    FAILS = "fails"
    MAY_FAIL = "may fail"
    UNSEEN = "unseen"  # neither the log nor footers show it


@dataclass(frozen=True)
class TypeIssue:
    """A column that breaks a rule, or may; `statement` is a query that decides it, None if none is needed."""

    column: str
    type: str
    certainty: Certainty
    message: str
    statement: str | None = None

    def __str__(self) -> str:
        """The column, the message and the statement."""
        return f"{self.column} {self.message}{f' ({self.statement})' if self.statement else ''}"


def type_issues(
    uri: str,
    names: ColumnNames,
    partitioned_by: Collection[str] = (),
    columns: Iterable[ParquetColumn] = (),
) -> tuple[TypeIssue, ...]:
    """Return all issues of the table at `uri`, in the order of its columns; `columns` are those of its files."""
    fields, longest = names.schema.fields, {column.path: column.longest_bytes for column in columns}
    issues = []
    for column in fields:
        name, kind = quoted(column.name), column.type
        family, why_not = column.kind.family, column.kind.direct_lake
        if why_not:
            issues.append(TypeIssue(column.name, kind, Certainty.FAILS, why_not))
        elif family is Family.TEXT:
            declared = _DECLARED_LENGTH.fullmatch(kind)
            lengths = (int(declared[1]) if declared else None, longest.get(column.physical_name or column.name))
            most = min((length for length in lengths if length is not None), default=MOST_CHARACTERS + 1)
            # Values of partition columns are names of folders, which are short.
            if column.name not in partitioned_by and most > MOST_CHARACTERS:
                message = (
                    f"may hold texts of more than {MOST_CHARACTERS:,} characters, the most that Direct Lake loads; a "
                    f"mirror can land left({name}, {MOST_CHARACTERS})"
                )
                statement = f"SELECT max(length({name})) FROM {table_at(uri)}"  # noqa: S608 for people to run
                issues.append(TypeIssue(column.name, kind, Certainty.UNSEEN, message, statement))
        elif family is Family.FLOAT:
            message = (
                "may hold NaN or infinity, which Direct Lake doesn't support and footers don't show: use DECIMAL, in a "
                f"mirror by `{column.name}: {{sql: try_cast({name} AS DECIMAL(18,4)), type: 'decimal(18,4)'}}`"
            )
            test = f"isnan({name}) OR abs({name}) = double('infinity')"
            statement = f"SELECT count(*) FROM {table_at(uri)} WHERE {test}"  # noqa: S608 for people to run
            issues.append(TypeIssue(column.name, kind, Certainty.MAY_FAIL, message, statement))
        elif why_not is None:
            message = f"has the undocumented type {kind}: cast it, or leave it out of the model"
            issues.append(TypeIssue(column.name, kind, Certainty.MAY_FAIL, message))
    return tuple(issues)
