"""What a slice is made from: its key, chunk and kind, the versions and scans to read, and what binds it to its plan.

A staged slice may land only under the settings and the release that made its parts.
"""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version

from mirror_assets.byte_settings import PINNED
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.landing.format import Chunk, SliceKind, SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.pipeline.source_check import condition_fingerprint, recorded_columns, table_columns
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.losses import SourceRead
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.scan import Scan
from mirror_assets.source.scan_builder import VersionPart, scan_changes, scan_version
from mirror_assets.source.schema import parse_schema


def slice_key(planned: PlannedSlice) -> SliceKey:
    """Return the planned slice's partition key."""
    return SliceKey(planned.epoch, planned.first, planned.last)


def chunk_of(planned: PlannedSlice) -> Chunk | None:
    """Return which chunk of its slice is planned, as slice records have it; None for a whole slice."""
    chunk = planned.chunk
    return Chunk(number=chunk.number, of=chunk.of, first=chunk.first, end=chunk.end) if chunk else None


def slice_kind(table: TableSettings, planned: PlannedSlice, *, is_first: bool) -> SliceKind:
    """Return the kind of the slice; the first of an epoch (`is_first`) always has a file."""
    if planned.is_repair:
        return SliceKind.REPAIR
    if planned.is_snapshot:
        return SliceKind.SNAPSHOT
    if planned.is_start or (is_first and not planned.parts):
        return SliceKind.START
    if table.changes is Changes.APPEND_ONLY:
        return SliceKind.APPENDS
    return SliceKind.NET if table.is_net or planned.compared else SliceKind.CHANGES


def scan_of(log: DeltaLog, kind: SliceKind, commits: CommitRange, part: VersionPart | None = None) -> Scan:
    """Return the scan of a slice that isn't read by comparing versions. Raises what the log raises."""
    if kind is SliceKind.SNAPSHOT:
        return scan_version(log, commits.last, part or VersionPart(table_id=commits.table_id))
    return scan_changes(log, commits, by_feed=kind is not SliceKind.APPENDS)


def versions_compared(table: TableSettings, made_from: PlannedSlice | SliceRecord) -> tuple[int, int] | None:
    """Return the two versions that a slice is read from; None if it is read from change rows, or a whole version."""
    if made_from.compared:
        return made_from.compared.before, made_from.compared.last
    key = slice_key(made_from) if isinstance(made_from, PlannedSlice) else made_from.slice
    return (key.first - 1, key.last) if table.changes is Changes.ROW_TRACKING else None


def source_read(table: TableSettings, kind: SliceKind, made_from: PlannedSlice | SliceRecord) -> SourceRead:
    """Return the versions of the source that a slice is made from."""
    key = slice_key(made_from) if isinstance(made_from, PlannedSlice) else made_from.slice
    if kind in (SliceKind.SNAPSHOT, SliceKind.REPAIR):
        return SourceRead(key.last, key.last, versions=(key.last,))
    return SourceRead(key.first, key.last, versions_compared(table, made_from) or ())


def planned_binding(table: TableSettings, planned: PlannedSlice) -> str:
    """Return the digest of the planned slice under the table's settings. Raises what `table_columns` raises."""
    return _binding(table, planned.table_id, slice_key(planned), chunk_of(planned), planned.schema_string)


def is_bound(table: TableSettings, record: SliceRecord) -> bool:
    """Return whether the staged slice was made with the table's settings. Reads neither source nor parts.

    Raises SettingError for an unset variable in an expression, and COLUMN_UNFIT.
    """
    now = _binding(table, record.source_table_id, record.slice, record.chunk, record.source_schema)
    return record.binding == now


def _binding(table: TableSettings, table_id: str, key: SliceKey, chunk: Chunk | None, source_schema: str) -> str:
    """Return a digest of everything that decides the rows of the parts and their bytes.

    It leaves out the place (generation, number, incarnation) and how the rows are spread over parts: they change no
    value. It also leaves out why a slice is read by files: its rows are the same.
    """
    columns = recorded_columns(table_columns(table, parse_schema(source_schema)))
    made_from = {
        "release": version("mirror-assets"),
        "source": table.source,
        "table": table_id,
        "slice": key.recorded,
        "chunk": chunk.model_dump() if chunk else None,
        "schema": source_schema,
        "keys": table.mirror_keys,
        "columns": [column.model_dump() for column in columns],
        "where": condition_fingerprint(table),
        "changes": table.changes.value,
        "net": table.is_net,
        "settings": dict(PINNED),
    }
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
