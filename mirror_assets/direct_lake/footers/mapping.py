"""Which column of the table a column of its Parquet files belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.footers.errors import ColumnUnknown
from mirror_assets.source.actions import Metadata
from mirror_assets.source.schema import Field, Schema, parse_schema

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
