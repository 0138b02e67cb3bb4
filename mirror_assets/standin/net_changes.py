"""The net effect of consecutive landing files on the rows of a mirror, computed column by column.

Per key the last operation other than an insert decides (reference `landing-zone` §4.13, §4.15): earlier rows are
deleted, its own row remains unless it is a delete, and all later inserts remain, duplicates included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.markers import Marker
from mirror_assets.standin.landed_file import LandedFile
from mirror_assets.standin.mirror_columns import MirrorColumns, aligned


@dataclass(frozen=True)
class NetChanges:
    """Rows to add, and the keys whose existing rows are deleted; None for a plain append."""

    rows: pa.Table
    replaced: KeySet | None


def net_changes(files: Sequence[LandedFile], keys: Sequence[str], columns: MirrorColumns) -> NetChanges:
    """Compute the files' net effect on a mirror that has applied all earlier files."""
    rows = pa.concat_tables([aligned(file.rows, columns.schema) for file in files])
    if all(file.markers is None for file in files):
        return NetChanges(rows, None)
    markers = pa.chunked_array([chunk for file in files for chunk in _chunks(file)], pa.int8())
    deciding = pc.not_equal(markers, int(Marker.INSERT))
    replaced = KeySet(rows.filter(deciding), keys)
    return NetChanges(rows.filter(_remaining(replaced.codes(rows), markers, deciding)), replaced)


def _chunks(file: LandedFile) -> list[pa.Array]:
    if file.markers is None:
        return [pa.repeat(pa.scalar(int(Marker.INSERT), pa.int8()), file.rows.num_rows)]
    return list(file.markers.chunks)


def _remaining(codes: pa.ChunkedArray, markers: pa.ChunkedArray, deciding: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return for each row whether it exists after all files; the last update, delete or upsert of its key decides."""
    position = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(markers)))
    decisions = pa.table({"code": codes, "position": position}).filter(deciding)
    last = decisions.group_by("code").aggregate([("position", "max")])
    decided = last["position_max"].take(pc.index_in(codes, value_set=last["code"], skip_nulls=True))
    later = pc.fill_null(pc.greater(position, decided), fill_value=True)
    itself = pc.fill_null(pc.equal(position, decided), fill_value=False)
    return pc.or_(later, pc.and_(itself, pc.not_equal(markers, int(Marker.DELETE))))


class KeySet:
    """The distinct keys of some rows, each with a number; NULL equals NULL.

    It numbers the values of the first key column, then for each further column the pairs of the number so far and the
    column's number. So numbers are below the number of rows, and equal only for equal keys.
    """

    def __init__(self, rows: pa.Table, keys: Sequence[str]) -> None:
        """Take the keys of `rows`; `keys` names at least one column."""
        self.keys = tuple(keys)
        column = rows[self.keys[0]]
        self._first = known = pc.unique(column)
        self._steps: list[tuple[str, pa.Array, pa.Array]] = []
        for key in self.keys[1:]:
            values = pc.unique(rows[key])
            column = _paired(_lookup(column, known), rows[key], values)
            known = pc.unique(column)
            self._steps.append((key, values, known))

    def codes(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return for each row the number of its key, or NULL if the key is not in the set."""
        codes = _lookup(rows[self.keys[0]], self._first)
        for key, values, known in self._steps:
            codes = _lookup(_paired(codes, rows[key], values), known)
        return codes


def _lookup(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    return pc.cast(pc.index_in(column, value_set=values, skip_nulls=False), pa.int64())


def _paired(codes: pa.ChunkedArray, column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    return pc.add(pc.multiply(codes, pa.scalar(len(values), pa.int64())), _lookup(column, values))
