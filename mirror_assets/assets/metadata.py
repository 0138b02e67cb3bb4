"""Metadata of slices: numbers become plots over time in the UI."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import dagster as dg

from mirror_assets.assets.items import MetadataItem
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.publish import Published
from mirror_assets.mirroring.work import TableWork


def staged_metadata(work: TableWork, record: SliceRecord) -> dict[str, MetadataItem]:
    """What was read and staged for a slice."""
    columns = [dg.TableColumn(column.name, column.type) for column in record.columns]
    return {
        "dagster/column_schema": dg.TableSchema(columns),
        "dagster/partition_row_count": record.markers.total,
        **{f"read_{name}": count for name, count in record.read.model_dump().items()},
        **{f"written_{name}": count for name, count in record.markers.model_dump().items()},
        "parts": len(record.parts),
        "bytes": record.bytes,
        "first_version": record.key.first,
        "last_version": record.key.last,
        **_commit_times(record),
        "kind": record.kind.value,
        **({"chunk": str(record.chunk)} if record.chunk else {}),
        "generation": record.generation,
        "staged_in": dg.MetadataValue.path(f"{work.store.root}/{record.folder.path}"),
    }


def skipped_metadata(why: str) -> dict[str, MetadataItem]:
    """A slice with nothing left to do."""
    return {"skipped": why}


def landed_metadata(work: TableWork, published: Published) -> dict[str, MetadataItem]:
    """What landed for a slice; lag is the age of its last commit at this moment."""
    manifest = published.manifest
    rows = sum(entry.markers.total for entry in published.entries)
    landed = published.entries[0].number if published.entries else 0
    chunks = {"chunks": manifest.chunk.of, "rows_of_all_chunks": manifest.landed_rows} if manifest.chunk else {}
    metadata: dict[str, MetadataItem] = {
        "outcome": published.outcome.value,
        "dagster/partition_row_count": rows,
        "files": len(published.entries),
        "first_file": landed,
        "next_number": manifest.next_number,
        "covered_version": manifest.covered,
        "bytes": sum(entry.bytes for entry in published.entries),
        "table_folder": dg.MetadataValue.path(f"{work.store.root}/{work.name.folder}"),
        **chunks,
    }
    if manifest.covered_commit_ms is not None:
        metadata["lag_seconds"] = max(0.0, round(time.time() - manifest.covered_commit_ms / 1000, 3))
    return metadata


def _commit_times(record: SliceRecord) -> dict[str, MetadataItem]:
    times = {"first_commit": record.first_commit_ms, "last_commit": record.last_commit_ms}
    return {
        name: datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat()
        for name, milliseconds in times.items()
        if milliseconds is not None
    }
