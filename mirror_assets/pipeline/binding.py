"""Binds a staged slice to its plan: it may land only under the settings and the release that made its parts."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version

from mirror_assets.byte_settings import PINNED
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.landing.format import Chunk, SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.pipeline.plan import chunk_of, slice_key
from mirror_assets.pipeline.source_check import condition_fingerprint, recorded_columns, table_columns
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.schema import parse_schema


def planned_binding(table: TableSettings, planned: PlannedSlice) -> str:
    """Return the digest of the planned slice under the table's settings. Raises what `table_columns` raises."""
    return _binding(table, planned.table_id, slice_key(planned), chunk_of(planned), planned.schema_string)


def is_bound(table: TableSettings, record: SliceRecord) -> bool:
    """Return whether the staged slice was made with the table's settings. Reads neither source nor parts.

    Raises SettingError for an unset variable in an expression, and ColumnUnfit.
    """
    now = _binding(table, record.source_table_id, record.slice, record.chunk, record.source_schema)
    return record.binding == now


def _binding(table: TableSettings, table_id: str, key: SliceKey, chunk: Chunk | None, source_schema: str) -> str:
    """Return a digest of everything that decides the rows of the parts and their bytes.

    It leaves out the place (generation, number, incarnation), how the rows are spread over parts, and compression: they
    change no value. It also leaves out why a slice is read by files: its rows are the same.
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
