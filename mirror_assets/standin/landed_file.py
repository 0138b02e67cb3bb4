"""Reads a landing file and its `_metadata.json`, and checks all rules before any row is applied.

A mirror stores one canonical Arrow type per Delta type, so that a type change is one comparison.
Rules: reference `landing-zone` §4.2, §4.4 and §4.31 (the declaration), §4.10 (never partial or empty), §4.15 to §4.17
(markers), §4.22 to §4.27 (columns).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pydantic

from mirror_assets.column_types import COLUMN_TYPES
from mirror_assets.landing.format import first_problem
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.standin.errors import StopReason, first_line, table_stopped
from mirror_assets.zones import FileInfo, Store
from mirror_assets.zones.errors import FileTooLarge

_LIMIT = 1 << 20


@dataclass(frozen=True)
class LandedFile:
    """A valid landing file: its rows in canonical types, and their markers; None when all are inserts."""

    number: int
    info: FileInfo
    rows: pa.Table
    markers: pa.ChunkedArray | None
    columns: MirrorColumns


def read_landed_file(
    store: Store, info: FileInfo, number: int, metadata: TableMetadata, columns: MirrorColumns | None
) -> LandedFile:
    """Read and check the file, and add its columns to the mirror's. Raises TableStopped for any broken rule."""
    raw = _read(store, info)
    lowered = [name.lower() for name in raw.column_names]
    repeated = sorted({name for name in raw.column_names if lowered.count(name.lower()) > 1})
    if repeated:
        raise table_stopped(info.path, StopReason.COLUMN_REPEATED, f"columns {repeated} occur more than once")
    if not set(raw.column_names) - {ROW_MARKER}:
        raise table_stopped(info.path, StopReason.FILE_INVALID, "it has no data column")
    markers = _markers(info.path, raw, metadata)
    data = raw.drop_columns([ROW_MARKER]) if ROW_MARKER in raw.column_names else raw
    missing = [key for key in metadata.keys if key not in data.column_names]
    if missing:
        raise table_stopped(info.path, StopReason.KEY_COLUMN_MISSING, f"it lacks the key columns {missing}")
    landed = canonical_schema(info.path, data.schema)
    merged = first_columns(landed) if columns is None else columns.merged(info.path, landed)
    _check_required(info.path, data, markers, merged)
    return LandedFile(number, info, data.cast(landed), markers, merged)


def _read(store: Store, info: FileInfo) -> pa.Table:
    """Read the whole Parquet file. Raises TableStopped for every error of Arrow."""
    if info.size == 0:
        raise table_stopped(info.path, StopReason.FILE_EMPTY, "the Parquet file has 0 bytes")
    with store.open(info.path) as stream:
        local = store.local_path(info.path)
        try:
            with pq.ParquetFile(str(local) if local else stream, page_checksum_verification=True) as file:
                table: pa.Table = file.read()
                table.validate(full=True)
                return table
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # an error of the disk or the network, not of the file
            why = f"not a valid Parquet file: {first_line(error)}"
            raise table_stopped(info.path, StopReason.FILE_INVALID, why) from None


def _markers(path: str, raw: pa.Table, metadata: TableMetadata) -> pa.ChunkedArray | None:
    """Return the file's row markers as int8; None when every row is an insert."""
    if ROW_MARKER in raw.column_names:
        markers = _checked_markers(path, raw[ROW_MARKER])
    elif metadata.default_marker is Marker.INSERT:
        return None
    else:
        markers = pa.chunked_array([pa.repeat(pa.scalar(int(metadata.default_marker), pa.int8()), raw.num_rows)])
    if not pc.any(pc.not_equal(markers, int(Marker.INSERT)), min_count=0).as_py():
        return None
    if not metadata.keys:
        why = "it has updates, deletes or upserts, and _metadata.json declares no keyColumns"
        raise table_stopped(path, StopReason.MARKER_NEEDS_KEYS, why)
    return markers


def _checked_markers(path: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_integer(column.type):
        raise table_stopped(path, StopReason.MARKER_INVALID, f"{ROW_MARKER} has type {column.type}, not an integer")
    if column.null_count:
        raise table_stopped(path, StopReason.MARKER_INVALID, f"{ROW_MARKER} is NULL in {column.null_count} rows")
    # Not a constant: Arrow's first array from Python values imports pandas, which `status` doesn't need.
    allowed = pc.is_in(column, value_set=pa.array([int(marker) for marker in Marker], column.type))
    if not pc.all(allowed, min_count=0).as_py():
        found = sorted(pc.unique(column.filter(pc.invert(allowed))).to_pylist())[:10]
        why = f"{ROW_MARKER} has values {found}; only 0, 1, 2 and 4 are defined"
        raise table_stopped(path, StopReason.MARKER_INVALID, why)
    return column.cast(pa.int8())


def _check_required(path: str, data: pa.Table, markers: pa.ChunkedArray | None, columns: MirrorColumns) -> None:
    """Raise TableStopped if a column that landed NOT NULL is missing or has NULL outside of deletes (§4.17, §4.25)."""
    if not columns.required:
        return
    live = data if markers is None else data.filter(pc.not_equal(markers, int(Marker.DELETE)))
    if data.num_rows and not live.num_rows:
        return
    for name in sorted(columns.required):
        if name not in live.column_names or live[name].null_count:
            why = f"column {name!r} was landed as not nullable, and this file drops it or holds NULLs in it"
            raise table_stopped(path, StopReason.SCHEMA_MERGE_FAILURE, why)


class _Document(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="ignore", strict=True)

    keyColumns: tuple[str, ...] | None = None  # noqa: N815, Microsoft's spelling
    fileDetectionStrategy: str = "SequentialFileName"  # noqa: N815, Microsoft's spelling
    isUpsertDefaultRowMarker: bool = False  # noqa: N815, Microsoft's spelling
    FileFormat: str = "Parquet"


@dataclass(frozen=True)
class TableMetadata:
    """The declaration of the publisher: the key columns, and the row marker for files without a marker column."""

    keys: tuple[str, ...]
    default_marker: Marker


def read_metadata(store: Store, info: FileInfo) -> TableMetadata:
    """Read `_metadata.json`. Raises TableStopped for an invalid one, or for another file format."""
    path = info.path
    try:
        document = _Document.model_validate_json(store.read(path, _LIMIT).data)
    except pydantic.ValidationError as error:
        raise table_stopped(path, StopReason.METADATA_INVALID, first_problem(error)) from None
    except FileTooLarge as error:
        raise table_stopped(path, StopReason.METADATA_INVALID, f"{error.size} bytes are too many") from None
    if document.fileDetectionStrategy != "SequentialFileName":
        why = f"the stand-in does not support fileDetectionStrategy {document.fileDetectionStrategy!r}"
        raise table_stopped(path, StopReason.METADATA_UNSUPPORTED, why)
    if document.FileFormat != "Parquet":
        why = f"the stand-in does not support FileFormat {document.FileFormat!r}"
        raise table_stopped(path, StopReason.METADATA_UNSUPPORTED, why)
    keys = document.keyColumns or ()
    if len(set(keys)) != len(keys):
        raise table_stopped(path, StopReason.METADATA_INVALID, f"keyColumns {list(keys)} repeat a column")
    return TableMetadata(keys, Marker.UPSERT if document.isUpsertDefaultRowMarker else Marker.INSERT)


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

    def merged(self, path: str, landed: pa.Schema) -> MirrorColumns:
        """Return these columns followed by the landed ones that are new, which are nullable.

        Raises TableStopped if a landed column has another type, or another spelling, than the mirror's.
        """
        spelled, new = {field.name.lower(): field for field in self.schema}, []
        for field in landed:
            known = spelled.get(field.name.lower())
            if known is None:
                new.append(pa.field(field.name, field.type))
                continue
            if known.name != field.name:
                why = f"column {field.name!r} differs from the mirror's {known.name!r} only by case"
                raise table_stopped(path, StopReason.COLUMN_REPEATED, why)
            if known.type != field.type:
                why = f"column {field.name!r} changed its type from {known.type} to {field.type}"
                raise table_stopped(path, StopReason.TYPE_CHANGED, why)
        return MirrorColumns(pa.schema([*self.schema, *new]), self.required)


def first_columns(landed: pa.Schema) -> MirrorColumns:
    """Return the columns of a mirror whose first file has this schema."""
    required = frozenset(field.name for field in landed if not field.nullable)
    # Delta's NOT NULL is not used: Spark refuses tables of delta-rs that combine it with timestamp_ntz.
    return MirrorColumns(pa.schema([pa.field(field.name, field.type) for field in landed]), required)
