"""The check on order: keys whose markers would also allow another order are compared with the feed, read anew.

An INSERT comes before an UPDATE of its key, and an UPDATE before a DELETE; `key_uniqueness` has seen to that. Of a key
with other changes only the feed can tell: its n-th row in the parts must be its n-th change by commit.

Not every such key is compared, but enough that no two parts can stand in each other's place: for each two whose order
matters, one key at least is compared that would look otherwise then. Where the first sample has none, the hash of every
row is read, and more keys are compared, in the end all whose changes differ.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.audit.finding import CheckResult
from mirror_assets.audit.key_codes import Numbers, codes_of
from mirror_assets.audit.key_look import SAMPLES, KeyLook, keys_that_differ
from mirror_assets.audit.keyed_rows import MARKER, PLACE, VERSION, aliases
from mirror_assets.audit.part_swaps import Crossings, hidden_swaps
from mirror_assets.audit.repeats import shown_key, shown_place
from mirror_assets.audit.reread import FOUND_HASH, WANTED_HASH, WANTED_MARKER, Reread
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.markers import Marker

_NTH, _FOUND_MARKER = "nth", "found_marker"
# Of so many keys that any two parts share, one at least differs in them, almost always.
_MORE_KEYS, _ALL_KEYS = 64, 1 << 62


def row_order(staged: StagedSlice, look: KeyLook, reread: Reread) -> CheckResult:
    """Keys with several changes appear in commit order, where their markers would also allow another order.

    Nothing is read again when there are no such keys: the order of different keys is free. Values are read only where a
    key is updated twice: nothing else tells these rows apart. Raises what `spark_error` makes of Spark's exceptions.
    """
    if look.undecided is None or look.crossings is None:
        return CheckResult("row_order", (), {"repeated_keys": look.repeated, "keys_compared": 0})
    compared = _with_some_hashes(staged, look.undecided, reread if look.updated_twice else None)
    wrong = _wrong(staged, compared, reread, with_values=look.updated_twice)
    if not len(wrong) and _hides(staged, compared, look.crossings):
        compared, wrong = _looked_closer(staged, compared, reread)
    figures: dict[str, int | float | str] = {
        "repeated_keys": look.repeated,
        "keys_compared": len(_keys(staged, compared)),
    }
    return CheckResult("row_order", _problems(staged, wrong), figures)


def _looked_closer(staged: StagedSlice, known: pa.Table, reread: Reread) -> tuple[pa.Table, pa.Table]:
    """What is compared when the known rows let two parts stand in each other's place, and what is wrong of it."""
    hashes, compared, wrong = reread.all_hashes(), known, known.slice(0, 0)
    for per_crossing in (_MORE_KEYS, _ALL_KEYS):
        rows, crossings = keys_that_differ(staged, hashes, per_crossing)
        if rows is None:
            break  # the changes of each key are all the same, so their order is free
        compared = _with_hashes(staged, rows, hashes)
        wrong = _wrong(staged, compared, reread, with_values=True)
        if len(wrong) or per_crossing == _ALL_KEYS or not _hides(staged, compared, crossings):
            break
    return compared, wrong


def _hides(staged: StagedSlice, compared: pa.Table, crossings: Crossings) -> bool:
    """Whether two parts could stand in each other's place, and no compared key would tell though one might differ."""
    index, follows = codes_of(compared, aliases(staged.record)).in_order()
    ordered = compared.take(pa.array(index))
    parts = np.searchsorted(staged.bounds, ordered[PLACE].to_numpy(), side="right")
    markers, hashes = ordered[_FOUND_MARKER].to_pylist(), ordered[FOUND_HASH].fill_null(0).to_pylist()
    changes = list(zip(markers, hashes, strict=True))
    return bool(hidden_swaps(crossings, np.cumsum(~follows), parts, changes).any())


def _wrong(staged: StagedSlice, compared: pa.Table, reread: Reread, *, with_values: bool) -> pa.Table:
    """Changes of these keys whose marker, or values, differ between parts and feed."""
    keys, only = aliases(staged.record), _keys(staged, compared)
    expected = reread.expected(only, with_values=with_values)
    named = expected.select(keys).cast(only.schema)
    for name in (VERSION, WANTED_MARKER, WANTED_HASH):
        named = named.append_column(name, expected[name])
    both = _numbered(compared, keys).join(_numbered(named, keys), [*keys, _NTH], join_type="full outer")
    same = pc.and_(_are_same(both[_FOUND_MARKER], both[WANTED_MARKER]), _are_same(both[FOUND_HASH], both[WANTED_HASH]))
    return both.filter(pc.invert(same)).sort_by([(name, "ascending") for name in (*keys, _NTH)])


def _keys(staged: StagedSlice, rows: pa.Table) -> pa.Table:
    """The keys of the rows, each once."""
    return rows.group_by(aliases(staged.record)).aggregate([]).select(aliases(staged.record))


def _are_same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether values are equal, or both missing."""
    return pc.or_(pc.fill_null(pc.equal(one, other), fill_value=False), pc.and_(pc.is_null(one), pc.is_null(other)))


def _numbered(rows: pa.Table, keys: list[str]) -> pa.Table:
    """The rows, which come in their order, by key, and the number that each is of its key's, from 1."""
    if not len(rows):
        return rows.append_column(_NTH, pa.array([], pa.int64()))
    index, follows = codes_of(rows, keys).in_order()
    starts = np.flatnonzero(~follows)
    nth = np.arange(1, len(index) + 1) - np.repeat(starts, np.diff(starts, append=len(index)))
    return rows.take(pa.array(index)).append_column(_NTH, pa.array(nth))


def _with_some_hashes(staged: StagedSlice, rows: pa.Table, reread: Reread | None) -> pa.Table:
    """The rows in order, with a hash of their values; without a way to read them, with none."""
    found = _placed(staged, rows)
    if reread is None:
        return found.append_column(FOUND_HASH, pa.nulls(len(found), pa.int64()))
    return found.join(reread.some_hashes(found.select([PLACE])), PLACE).sort_by(PLACE)


def _with_hashes(staged: StagedSlice, rows: pa.Table, hashes: Numbers) -> pa.Table:
    """The rows in order, each with its hash by its place; a DELETE has none."""
    found = _placed(staged, rows)
    deleted = pc.equal(found[_FOUND_MARKER], int(Marker.DELETE))
    values = pa.array(hashes[found[PLACE].to_numpy()])
    return found.append_column(FOUND_HASH, pc.if_else(deleted, pa.scalar(None, pa.int64()), values))


def _placed(staged: StagedSlice, rows: pa.Table) -> pa.Table:
    names = aliases(staged.record)
    return rows.select([*names, MARKER, PLACE]).rename_columns([*names, _FOUND_MARKER, PLACE]).sort_by(PLACE)


def _problems(staged: StagedSlice, wrong: pa.Table) -> tuple[str, ...]:
    return tuple(
        f"key {shown_key(staged.record, row)}: its change number {row[_NTH]} is "
        f"{_change(row[_FOUND_MARKER])} in {_place(staged, row[PLACE])}, "
        f"and {_change(row[WANTED_MARKER])} at version {row[VERSION]} in the feed"
        for row in wrong.slice(0, SAMPLES).to_pylist()
    )


def _place(staged: StagedSlice, place: int | None) -> str:
    return "no part" if place is None else shown_place(staged, place)


def _change(marker: int | None) -> str:
    return "missing" if marker is None else Marker(marker).name if marker in set(Marker) else f"marker {marker}"
