"""Slices of changes whose parts are written by hand, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.landing.format import MarkerCounts, SliceRecord, StagedPart
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.state import CommitPosition
from mirror_assets.markers import ROW_MARKER
from mirror_assets.verify.staged import StagedSlice
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landing.staging import new_record

Row = tuple[int, str, int]


def staged_rows(folder: Path, parts: Sequence[Sequence[Row]]) -> StagedSlice:
    """A slice of changes with two key columns, whose parts hold these rows: key, key, marker."""
    store, staged = LocalStore(folder), []
    for index, rows in enumerate(parts):
        ids, places, markers = zip(*rows, strict=True) if rows else ((), (), ())
        part = StagedPart(
            name=f"part-{index:05d}.parquet", etag="e", bytes=1, sha256=None, markers=MarkerCounts(inserts=len(rows))
        )
        staged.append(part)
        columns = {"id": pa.array(ids, pa.int64()), "place": pa.array(places, pa.string())}
        table = pa.table(columns | {ROW_MARKER: pa.array(markers, pa.int32())})
        path = store.local_path(_record(tuple(staged)).folder.part(part.name))
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
    return StagedSlice(store, _record(tuple(staged)), store)


def _record(parts: tuple[StagedPart, ...]) -> SliceRecord:
    position = CommitPosition(epoch=1, incarnation="i", generation=2, first_number=2, covered=1)
    record = new_record(position, SliceKey(1, 2, 5), "0" * 30, parts)
    return record.model_copy(update={"keys": ("id", "place")})
