"""The net effect of consecutive landing files, column-wise (reference `landing-zone` §4.13 and §4.15).

Per key the last operation other than an insert decides: what was there before goes, its own row stays unless it is a
delete, and every later insert stays, duplicates included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.markers import Marker
from mirror_assets.replicator.columns import MirrorColumns, aligned
from mirror_assets.replicator.keys import KeySet
from mirror_assets.replicator.landed_file import LandedFile


@dataclass(frozen=True)
class NetChanges:
    """Rows to add, and the keys whose present rows go; no keys means a plain append."""

    rows: pa.Table
    replaced: KeySet | None


def net_changes(files: Sequence[LandedFile], keys: Sequence[str], columns: MirrorColumns) -> NetChanges:
    """The files' net effect on any mirror that has applied all files before them."""
    rows = pa.concat_tables([aligned(file.rows, columns.schema) for file in files])
    if all(file.markers is None for file in files):
        return NetChanges(rows, None)
    markers = pa.chunked_array([chunk for file in files for chunk in _chunks(file)], pa.int8())
    deciding = pc.not_equal(markers, int(Marker.INSERT))
    replaced = KeySet(rows.filter(deciding), keys)
    return NetChanges(rows.filter(_stays(replaced.codes(rows), markers, deciding)), replaced)


def _chunks(file: LandedFile) -> list[pa.Array]:
    if file.markers is None:
        return [pa.repeat(pa.scalar(int(Marker.INSERT), pa.int8()), file.rows.num_rows)]
    return list(file.markers.chunks)


def _stays(codes: pa.ChunkedArray, markers: pa.ChunkedArray, deciding: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether each row is still there after all files."""
    position = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(markers)))
    decided = _last_decision(codes, position, deciding)
    later = pc.fill_null(pc.greater(position, decided), fill_value=True)
    itself = pc.fill_null(pc.equal(position, decided), fill_value=False)
    return pc.or_(later, pc.and_(itself, pc.not_equal(markers, int(Marker.DELETE))))


def _last_decision(codes: pa.ChunkedArray, position: pa.Array, deciding: pa.ChunkedArray) -> pa.ChunkedArray:
    """Per row the position of the last deciding operation on its key; NULL when there is none."""
    decisions = pa.table({"code": codes, "position": position}).filter(deciding)
    last = decisions.group_by("code").aggregate([("position", "max")])
    return last["position_max"].take(pc.index_in(codes, value_set=last["code"], skip_nulls=True))
