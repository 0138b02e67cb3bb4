"""Keys that occur in more than one row of a slice's parts: what their markers alone tell of the rows' order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.audit.staged import StagedSlice
from mirror_assets.landing.format import SliceRecord, StagedPart
from mirror_assets.markers import ROW_MARKER, Marker

MARKER, PLACE, VERSION = "marker", "place", "version"
_NUMBER = "number"
_NONE = pa.table({"rows": pa.array([], pa.int64())})
# Two rows of a key that can stand in no other order.
_DECIDED = ((Marker.INSERT, Marker.UPDATE), (Marker.UPDATE, Marker.DELETE))


def aliases(record: SliceRecord) -> list[str]:
    """Names for the key columns that no other column here has, whatever the source calls them."""
    return [f"key{index}" for index in range(len(record.keys))]


def shown_key(record: SliceRecord, row: Mapping[str, object]) -> str:
    """The key of a row that has it by `aliases`, as readable text."""
    return ", ".join(f"{name}={row[alias]!r}" for name, alias in zip(record.keys, aliases(record), strict=True))


def shown_place(staged: StagedSlice, place: int) -> str:
    """Where a row of this place is, as readable text."""
    part, before = [found for found in staged.rows_before.items() if found[1] <= place][-1]
    return f"row {place - before} of {part}"


@dataclass(frozen=True)
class RepeatedKeys:
    """Keys that occur in more than one row of a slice's parts, in columns `key0` … of all tables.

    `counted` has each key once, and its number of `rows`; `every` has all rows of the parts: the `version` that each
    is of, where its part holds no other, and its `marker` where the parts have markers.
    """

    keys: tuple[str, ...]
    counted: pa.Table
    every: pa.Table

    def __len__(self) -> int:
        """The number of keys."""
        return len(self.counted)

    @cached_property
    def ordered(self) -> pa.Table:
        """The rows of these keys, by key and in order; `place` is the number of rows before a row in all parts."""
        place = pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(self.every))), 1)
        rows = self.every.append_column(PLACE, place)
        repeated = rows.join(self.counted.select(self.keys), list(self.keys), join_type="left semi")
        return repeated.sort_by([(name, "ascending") for name in (*self.keys, PLACE)]).combine_chunks()

    def undecided(self, most: int) -> pa.Table:
        """Rows of keys whose markers would also allow another order; of up to `most` keys, spread evenly.

        Decided are an INSERT with its UPDATE and an UPDATE with its DELETE alone: all else that makes sense makes sense
        in another order, too.
        """
        rows = self.ordered
        starts = pc.indices_nonzero(pc.invert(follows_same(rows, self.keys)))
        first, second = (rows[MARKER].take(pc.add(starts, offset)) for offset in (0, 1))
        decided = reduce(
            pc.or_,
            (pc.and_(pc.equal(first, int(one)), pc.equal(second, int(two))) for one, two in _DECIDED),
        )
        more = pc.greater(pc.pairwise_diff(pa.concat_arrays([starts, pa.array([len(rows)], starts.type)]))[1:], 2)
        open_ = pc.indices_nonzero(pc.or_(more, pc.invert(decided)))
        step = max(1, -(-len(open_) // most))
        numbered = rows.append_column(_NUMBER, self._numbers(rows))
        return numbered.filter(pc.is_in(numbered[_NUMBER], value_set=open_[::step])).drop_columns(_NUMBER)

    def are_updated_twice(self, rows: pa.Table) -> bool:
        """Whether one of the ordered rows updates what the one before it has updated: only values tell them apart."""
        is_update = pc.equal(rows[MARKER], int(Marker.UPDATE)).combine_chunks()
        both = pc.and_(is_update[1:], is_update[: max(0, len(rows) - 1)])
        return bool(pc.any(pc.and_(both, follows_same(rows, self.keys)[1:])).as_py())

    def _numbers(self, rows: pa.Table) -> pa.Array:
        """The number of each row's key, from 0."""
        begins = pc.invert(follows_same(rows, self.keys)).cast(pa.uint64())
        return pc.subtract(pc.cumulative_sum(begins), pa.scalar(1, pa.uint64()))


def follows_same(rows: pa.Table, keys: Sequence[str]) -> pa.Array:
    """Whether each row has the key of the one before it. Keys are never NULL nor floating-point by then."""
    if not len(rows):
        return pa.array([], pa.bool_())
    columns = [rows[key].combine_chunks() for key in keys]
    same = reduce(pc.and_, (pc.equal(column[1:], column[:-1]) for column in columns))
    return pa.concat_arrays([pa.array([False]), same])


def repeated_keys(staged: StagedSlice) -> RepeatedKeys:
    """The keys that occur in more than one row of the slice's parts; none where the slice has no keys."""
    keys = aliases(staged.record)
    columns = dict(zip(staged.record.keys, keys, strict=True))
    if staged.record.kind.has_markers:
        columns[ROW_MARKER] = MARKER
    tables = [_columns(staged, part, columns) for part in staged.record.parts] if keys else []
    if not tables:
        return RepeatedKeys((), _NONE, _NONE)
    every = pa.concat_tables(tables)
    counted = every.group_by(keys).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    return RepeatedKeys(tuple(keys), counted.rename_columns([*keys, "rows"]), every)


def _columns(staged: StagedSlice, part: StagedPart, columns: Mapping[str, str]) -> pa.Table:
    """Columns of the part under other names, and the commit that it holds, or NULL."""
    with staged.open(staged.path(part.name)) as file:
        table = file.read(list(columns)).select(list(columns)).rename_columns(list(columns.values()))
    return table.append_column(VERSION, pa.repeat(pa.scalar(part.version, pa.int64()), len(table)))
