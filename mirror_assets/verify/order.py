"""Check that the changes of a key are in commit order, by comparing some keys with the change feed.

For most keys the markers decide the order: an INSERT precedes the UPDATE of its key, an UPDATE the DELETE, and
`key_uniqueness` checks that. For a key whose markers also allow another order (an undecided key), the n-th row in the
parts must equal its n-th change by commit in the change feed.

If there are many undecided keys, the check compares a sample that would reveal any two swapped parts: for each two
parts whose order matters, it has a key whose changes would then be in another order. If the first sample lacks such a
key for some two parts, the check reads the hash of every row and compares more keys, in the end all whose changes
differ.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.markers import Marker
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.keys import MARKER, PLACE, VERSION, aliases, codes_of
from mirror_assets.verify.part_swaps import Crossings, hidden_swaps
from mirror_assets.verify.repeated_keys import SAMPLES, KeyInspection, describe_key, describe_place, keys_that_differ
from mirror_assets.verify.row_reader import FOUND_HASH, WANTED_HASH, WANTED_MARKER, RowReader
from mirror_assets.verify.staged import Numbers, StagedSlice

_NTH, _FOUND_MARKER = "nth", "found_marker"
# Keys to compare per two parts that share keys: with 64, almost always one has different changes in the two.
_MORE_KEYS, _ALL_KEYS = 64, 1 << 62


def row_order(staged: StagedSlice, keys: KeyInspection, reader: RowReader) -> CheckResult:
    """Check that keys with several changes appear in commit order, where their markers would also allow another order.

    Reads nothing if there are no such keys: rows of different keys may come in any order. Reads values only if a key is
    updated twice: nothing else tells these rows apart. Raises what `spark_errors` raises.
    """
    if keys.undecided is None or keys.crossings is None:
        return CheckResult("row_order", (), {"repeated_keys": keys.repeated, "keys_compared": 0})
    compared = _with_some_hashes(staged, keys.undecided, reader if keys.updated_twice else None)
    wrong = _wrong(staged, compared, reader, with_values=keys.updated_twice)
    if not len(wrong) and _hides_a_swap(staged, compared, keys.crossings):
        compared, wrong = _compare_more(staged, compared, reader)
    figures: dict[str, int | float | str] = {
        "repeated_keys": keys.repeated,
        "keys_compared": len(_keys(staged, compared)),
    }
    return CheckResult("row_order", _problems(staged, wrong), figures)


def _with_some_hashes(staged: StagedSlice, rows: pa.Table, reader: RowReader | None) -> pa.Table:
    """Return the rows in order with the hashes of their values; NULL without a reader."""
    found = _in_order(staged, rows)
    if reader is None:
        return found.append_column(FOUND_HASH, pa.nulls(len(found), pa.int64()))
    return found.join(reader.some_hashes(found.select([PLACE])), PLACE).sort_by(PLACE)


def _wrong(staged: StagedSlice, compared: pa.Table, reader: RowReader, *, with_values: bool) -> pa.Table:
    """Return the changes of these keys whose marker or values differ between parts and feed."""
    keys, only = aliases(staged.record), _keys(staged, compared)
    expected = reader.expected(only, with_values=with_values)
    named = expected.select(keys).cast(only.schema)
    for name in (VERSION, WANTED_MARKER, WANTED_HASH):
        named = named.append_column(name, expected[name])
    both = _numbered(compared, keys).join(_numbered(named, keys), [*keys, _NTH], join_type="full outer")
    same = pc.and_(_are_same(both[_FOUND_MARKER], both[WANTED_MARKER]), _are_same(both[FOUND_HASH], both[WANTED_HASH]))
    return both.filter(pc.invert(same)).sort_by([(name, "ascending") for name in (*keys, _NTH)])


def _keys(staged: StagedSlice, rows: pa.Table) -> pa.Table:
    """Return the keys of the rows, each once."""
    return rows.group_by(aliases(staged.record)).aggregate([]).select(aliases(staged.record))


def _numbered(rows: pa.Table, keys: list[str]) -> pa.Table:
    """Return rows that come in their order sorted by key, each with its number among its key's rows, from 1."""
    if not len(rows):
        return rows.append_column(_NTH, pa.array([], pa.int64()))
    index, follows = codes_of(rows, keys).in_order()
    starts = np.flatnonzero(~follows)
    nth = np.arange(1, len(index) + 1) - np.repeat(starts, np.diff(starts, append=len(index)))
    return rows.take(pa.array(index)).append_column(_NTH, pa.array(nth))


def _are_same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whether values are equal, or both NULL."""
    return pc.or_(pc.fill_null(pc.equal(one, other), fill_value=False), pc.and_(pc.is_null(one), pc.is_null(other)))


def _hides_a_swap(staged: StagedSlice, compared: pa.Table, crossings: Crossings) -> bool:
    """Return whether two parts that share keys could be swapped while all compared keys still look right."""
    index, follows = codes_of(compared, aliases(staged.record)).in_order()
    ordered = compared.take(pa.array(index))
    parts = np.searchsorted(staged.bounds, ordered[PLACE].to_numpy(), side="right")
    markers, hashes = ordered[_FOUND_MARKER].to_pylist(), ordered[FOUND_HASH].fill_null(0).to_pylist()
    changes = list(zip(markers, hashes, strict=True))
    return bool(hidden_swaps(crossings, np.cumsum(~follows), parts, changes).any())


def _compare_more(staged: StagedSlice, compared: pa.Table, reader: RowReader) -> tuple[pa.Table, pa.Table]:
    """Compare more keys, by all rows' hashes, until no swap stays hidden; return their rows, and the wrong ones."""
    hashes, wrong = reader.all_hashes(), compared.slice(0, 0)
    for per_crossing in (_MORE_KEYS, _ALL_KEYS):
        rows, crossings = keys_that_differ(staged, hashes, per_crossing)
        if rows is None:
            break  # the changes of each key are all the same, so their order is free
        compared = _with_hashes(staged, rows, hashes)
        wrong = _wrong(staged, compared, reader, with_values=True)
        if len(wrong) or per_crossing == _ALL_KEYS or not _hides_a_swap(staged, compared, crossings):
            break
    return compared, wrong


def _with_hashes(staged: StagedSlice, rows: pa.Table, hashes: Numbers) -> pa.Table:
    """Return the rows in order, each with its hash by its place; NULL for a DELETE."""
    found = _in_order(staged, rows)
    deleted = pc.equal(found[_FOUND_MARKER], int(Marker.DELETE))
    values = pa.array(hashes[found[PLACE].to_numpy()])
    return found.append_column(FOUND_HASH, pc.if_else(deleted, pa.scalar(None, pa.int64()), values))


def _in_order(staged: StagedSlice, rows: pa.Table) -> pa.Table:
    names = aliases(staged.record)
    return rows.select([*names, MARKER, PLACE]).rename_columns([*names, _FOUND_MARKER, PLACE]).sort_by(PLACE)


def _problems(staged: StagedSlice, wrong: pa.Table) -> tuple[str, ...]:
    return tuple(
        f"key {describe_key(staged.record, row)}: its change number {row[_NTH]} is "
        f"{_change(row[_FOUND_MARKER])} in {_place(staged, row[PLACE])}, "
        f"and {_change(row[WANTED_MARKER])} at version {row[VERSION]} in the feed"
        for row in wrong.slice(0, SAMPLES).to_pylist()
    )


def _place(staged: StagedSlice, place: int | None) -> str:
    return "no part" if place is None else describe_place(staged, place)


def _change(marker: int | None) -> str:
    return "missing" if marker is None else Marker(marker).name if marker in set(Marker) else f"marker {marker}"
