"""Keys that occur in more than one row of a slice's parts: what their markers alone tell of the rows' order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.audit.keyed_rows import MARKER, PLACE, VERSION, aliases
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.landing.format import SliceRecord
from mirror_assets.markers import Marker

_NUMBER = "number"
# Two rows of a key that can stand in no other order.
_DECIDED = ((Marker.INSERT, Marker.UPDATE), (Marker.UPDATE, Marker.DELETE))


def shown_key(record: SliceRecord, row: Mapping[str, object]) -> str:
    """The key of a row that has it by `aliases`, as readable text."""
    return ", ".join(f"{name}={row[alias]!r}" for name, alias in zip(record.keys, aliases(record), strict=True))


def shown_place(staged: StagedSlice, place: int) -> str:
    """Where a row of this place is, as readable text."""
    part, before = [found for found in staged.rows_before.items() if found[1] <= place][-1]
    return f"row {place - before} of {part}"


@dataclass(frozen=True)
class RepeatedKeys:
    """Keys that occur in more than one of `every` row (see `keyed_rows`): `counted`, each once with its `rows`."""

    keys: tuple[str, ...]
    counted: pa.Table
    every: pa.Table

    @classmethod
    def among(cls, every: pa.Table, keys: Sequence[str]) -> RepeatedKeys:
        """The keys that are repeated in these rows."""
        counted = every.group_by(keys).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
        return cls(tuple(keys), counted.rename_columns([*keys, "rows"]), every)

    def __len__(self) -> int:
        """The number of keys."""
        return len(self.counted)

    @cached_property
    def ordered(self) -> pa.Table:
        """The rows of these keys, by key and in order."""
        repeated = self.every.join(self.counted.select(self.keys), list(self.keys), join_type="left semi")
        return repeated.sort_by([(name, "ascending") for name in (*self.keys, PLACE)]).combine_chunks()

    def impossible(self) -> pa.Table:
        """Rows whose marker can't follow that of the key's row before, or that are of the same commit."""
        ordered = self.ordered
        before, after = ordered.slice(0, max(0, len(ordered) - 1)), ordered.slice(1)
        is_same = follows_same(ordered, self.keys).slice(1)
        was_there = pc.not_equal(before[MARKER], int(Marker.DELETE))
        inserts = pc.equal(after[MARKER], int(Marker.INSERT))
        is_again = pc.fill_null(pc.equal(before[VERSION], after[VERSION]), fill_value=False)
        return after.filter(pc.and_(is_same, pc.or_(is_again, pc.equal(was_there, inserts))))

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

    def _numbers(self, rows: pa.Table) -> pa.Array:
        """The number of each row's key, from 0."""
        begins = pc.invert(follows_same(rows, self.keys)).cast(pa.uint64())
        return pc.subtract(pc.cumulative_sum(begins), pa.scalar(1, pa.uint64()))


def are_updated_twice(rows: pa.Table, keys: Sequence[str]) -> bool:
    """Whether one of the ordered rows updates what the one before it has updated: only values tell them apart."""
    is_update = pc.equal(rows[MARKER], int(Marker.UPDATE)).combine_chunks()
    both = pc.and_(is_update[1:], is_update[: max(0, len(rows) - 1)])
    return bool(pc.any(pc.and_(both, follows_same(rows, keys)[1:])).as_py())


def follows_same(rows: pa.Table, keys: Sequence[str]) -> pa.Array:
    """Whether each row has the key of the one before it. Keys are never NULL nor floating-point by then."""
    if not len(rows):
        return pa.array([], pa.bool_())
    columns = [rows[key].combine_chunks() for key in keys]
    same = reduce(pc.and_, (pc.equal(column[1:], column[:-1]) for column in columns))
    return pa.concat_arrays([pa.array([False]), same])
