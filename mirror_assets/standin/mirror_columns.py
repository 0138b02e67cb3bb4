"""Column types and the union schema of a mirror (reference `landing-zone` §4.22 to §4.27).

A mirror stores one canonical Arrow type per Delta type, so that a type change is one comparison.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from mirror_assets.column_types import COLUMN_TYPES
from mirror_assets.standin.errors import StopReason, table_stopped

REQUIRED = "mirror_assets.required"
_MIRRORED = frozenset(kind.arrow for kind in COLUMN_TYPES if kind.arrow is not None)


def canonical_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that the mirror stores for a Parquet column; None if no Delta type has all its values."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    # INT96 is also read as nanoseconds: it has no defined zone, and years outside 1677..2262 would wrap.
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    return kind if kind in _MIRRORED or pa.types.is_decimal128(kind) else None


def canonical_schema(path: str, schema: pa.Schema) -> pa.Schema:
    """Return the landing file's schema in canonical types. Raises TableStopped for an unsupported type."""
    fields = []
    for field in schema:
        kind = canonical_type(field.type)
        if kind is None:
            why = f"column {field.name!r} has type {field.type}, which a mirror does not support"
            raise table_stopped(path, StopReason.TYPE_UNSUPPORTED, why)
        fields.append(pa.field(field.name, kind, field.nullable))
    return pa.schema(fields)


@dataclass(frozen=True)
class MirrorColumns:
    """The union of all columns landed so far; `required` are the not nullable ones of the first file."""

    schema: pa.Schema
    required: frozenset[str]

    def check_types(self, path: str, landed: pa.Schema) -> None:
        """Raise TableStopped if a landed column has another type, or another spelling, than the mirror's."""
        spelled = {field.name.lower(): field for field in self.schema}
        for field in landed:
            known = spelled.get(field.name.lower())
            if known is None:
                continue
            if known.name != field.name:
                why = f"column {field.name!r} differs from the mirror's {known.name!r} only by case"
                raise table_stopped(path, StopReason.COLUMN_REPEATED, why)
            if known.type != field.type:
                why = f"column {field.name!r} changed its type from {known.type} to {field.type}"
                raise table_stopped(path, StopReason.TYPE_CHANGED, why)

    def merged(self, landed: pa.Schema) -> MirrorColumns:
        """Return these columns followed by the landed ones that are new, which are nullable."""
        known = set(self.schema.names)
        new = [pa.field(field.name, field.type) for field in landed if field.name not in known]
        return MirrorColumns(pa.schema([*self.schema, *new]), self.required)


def first_columns(landed: pa.Schema) -> MirrorColumns:
    """Return the columns of a mirror whose first file has this schema."""
    required = frozenset(field.name for field in landed if not field.nullable)
    # Delta's NOT NULL is not used: Spark refuses tables of delta-rs that combine it with timestamp_ntz.
    return MirrorColumns(pa.schema([pa.field(field.name, field.type) for field in landed]), required)


def aligned(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows with exactly the schema's columns; a missing one is NULL."""
    have = set(rows.column_names)
    arrays = [rows[f.name] if f.name in have else pa.nulls(rows.num_rows, f.type) for f in schema]
    return pa.table(arrays, schema=schema)
