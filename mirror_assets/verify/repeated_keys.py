"""Inspect the keys that occur in several rows of a slice's parts: whether their markers allow the order of the rows.

The checks `key_uniqueness` and `row_order` share this one pass over all keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from mirror_assets.landing.format import SliceKind, SliceRecord
from mirror_assets.markers import Marker
from mirror_assets.row_values import shown_key
from mirror_assets.verify.keys import MARKER, PLACE, SHARE_ROWS, VERSION, aliases, codes_of, maybe_repeated, read_keys
from mirror_assets.verify.part_swaps import Crossings, Flags
from mirror_assets.verify.staged import Numbers, StagedSlice

ROWS = "rows"
SAMPLES = 5
# Undecided keys of a share to compare, evenly spaced: an encoder's error recurs, so a sample shows it.
_MOST_KEYS = 1_000
# Further keys to compare for each two parts that share keys: swapped parts are a single error.
_PER_CROSSING = 4
_NO_VERSION = -1
# Sequences of a key's changes whose markers allow no other order.
_DECIDED = ((Marker.INSERT, Marker.UPDATE), (Marker.UPDATE, Marker.DELETE))


@dataclass(frozen=True)
class Violations:
    """The number of keys or rows that violate a rule, and a sample: keys with their number of `rows`, or rows."""

    count: int = 0
    samples: pa.Table | None = None

    @classmethod
    def of(cls, found: pa.Table) -> Violations:
        """Return a violation for each row of the table."""
        return cls(len(found), found.slice(0, SAMPLES)) if len(found) else cls()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The sample as one mapping per row."""
        return [] if self.samples is None else self.samples.to_pylist()

    def __add__(self, other: Violations) -> Violations:
        """Return the violations of both shares."""
        return Violations(self.count + other.count, _concat(self.samples, other.samples, SAMPLES))


@dataclass(frozen=True)
class KeyInspection:
    """The keys of a slice that occur in several rows of its parts.

    `repeated` is the number of these keys; `too_many` are keys with more than `allowed` rows; `impossible` are rows
    whose marker can't follow the marker of the key's previous row. `undecided` has the rows, sorted by key and place,
    of keys whose markers also allow another order, or of a sample of these keys; None if there are none.
    `updated_twice` is true if only values distinguish some of these rows. `crossings` cover all undecided keys.
    """

    allowed: int = 1
    repeated: int = 0
    too_many: Violations = field(default_factory=Violations)
    impossible: Violations = field(default_factory=Violations)
    undecided: pa.Table | None = None
    updated_twice: bool = False
    crossings: Crossings | None = None

    def __add__(self, other: KeyInspection) -> KeyInspection:
        """Return the inspection of both shares."""
        crossings = self.crossings or other.crossings
        if self.crossings and other.crossings:
            crossings = self.crossings + other.crossings
        return KeyInspection(
            max(self.allowed, other.allowed),
            self.repeated + other.repeated,
            self.too_many + other.too_many,
            self.impossible + other.impossible,
            _concat(self.undecided, other.undecided),
            self.updated_twice or other.updated_twice,
            crossings,
        )


def inspect_keys(staged: StagedSlice, rows_allowed: Callable[[], int], share_rows: int = SHARE_ROWS) -> KeyInspection:
    """Inspect all keys, one share at a time, so that a slice need not fit into memory.

    `rows_allowed` returns the most rows that a key may have; it is called only if a key has several rows.
    """
    inspect = partial(_inspect_share, staged, rows_allowed)
    return sum(map(inspect, read_keys(staged, share_rows)), KeyInspection())  # `map` frees a share before the next


def _inspect_share(staged: StagedSlice, rows_allowed: Callable[[], int], share: pa.Table) -> KeyInspection:
    keys = aliases(staged.record)
    repeated = RepeatedKeys.among(share, keys)
    if not len(repeated):
        return KeyInspection()
    allowed = rows_allowed()
    too_many = Violations.of(repeated.with_more_rows(allowed, keys))
    if too_many.count or staged.record.kind is not SliceKind.CHANGES:
        return KeyInspection(allowed, len(repeated), too_many)
    impossible, undecided = Violations.of(repeated.impossible()), repeated.undecided()
    if not len(undecided):
        return KeyInspection(allowed, len(repeated), too_many, impossible)
    some = undecided.sample(_MOST_KEYS, staged.bounds, _PER_CROSSING)
    twice, crossings = some.are_updated_twice(), undecided.crossings(staged.bounds)
    return KeyInspection(allowed, len(repeated), too_many, impossible, some.rows, twice, crossings)


def keys_that_differ(
    staged: StagedSlice, hashes: Numbers, per_crossing: int, share_rows: int = SHARE_ROWS
) -> tuple[pa.Table | None, Crossings]:
    """Return the rows of undecided keys with different changes, sorted by key and place, and the crossings of all.

    `hashes[place]` is the hash of a row's values. If there are many keys, the rows are of a sample that has up to
    `per_crossing` keys for each two parts that share keys.
    """
    found, crossings = None, Crossings.none(len(staged.bounds))
    for share in read_keys(staged, share_rows):
        differ = RepeatedKeys.among(share, aliases(staged.record)).undecided().that_differ(hashes)
        if len(differ):
            found = _concat(found, differ.sample(_MOST_KEYS, staged.bounds, per_crossing).rows)
            crossings += differ.crossings(staged.bounds)
    return found, crossings


def _concat(one: pa.Table | None, other: pa.Table | None, most: int | None = None) -> pa.Table | None:
    found = [rows for rows in (one, other) if rows is not None]
    return pa.concat_tables(found).slice(0, most) if found else None


@dataclass(frozen=True)
class RepeatedKeys:
    """The keys that occur in several rows of `every`, a table from `read_keys`.

    `index` has the indices of their rows in `every`, sorted by key and place; `starts` has the positions in `index` at
    which a new key begins.
    """

    every: pa.Table
    index: Numbers
    starts: Numbers

    @classmethod
    def among(cls, every: pa.Table, keys: Sequence[str]) -> RepeatedKeys:
        """Return the repeated keys of a table that has rows."""
        candidates = maybe_repeated(every, keys)
        if not len(candidates):
            return cls(every, candidates, candidates)
        rows = every if len(candidates) == len(every) else every.select(list(keys)).take(pa.array(candidates))
        index, follows = codes_of(rows, keys).in_order()
        repeated = follows.copy()
        repeated[:-1] |= follows[1:]
        return cls(every, candidates[index[repeated]], np.flatnonzero(~follows[repeated]))

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.starts)

    @property
    def rows(self) -> pa.Table:
        """The rows of these keys, sorted by key and place."""
        return self.every.take(pa.array(self.index))

    def with_more_rows(self, allowed: int, keys: Sequence[str]) -> pa.Table:
        """Return the keys with more rows than allowed, each once with its number of `rows`."""
        many = self._row_counts > allowed
        found = self.every.select(list(keys)).take(pa.array(self.index[self.starts[many]]))
        return found.append_column(ROWS, pa.array(self._row_counts[many]))

    def impossible(self) -> pa.Table:
        """Return rows that can't follow their key's previous row: by the markers, or because both are of one commit."""
        marker, version = self._markers, self._values(VERSION)
        was_there, inserts = marker[:-1] != Marker.DELETE, marker[1:] == Marker.INSERT
        is_again = (version[:-1] == version[1:]) & (version[1:] != _NO_VERSION)
        wrong = np.flatnonzero(self._follows[1:] & (is_again | (was_there == inserts))) + 1
        return self.every.take(pa.array(self.index[wrong]))

    def undecided(self) -> RepeatedKeys:
        """Return the keys whose markers also allow another order of their rows.

        Only INSERT, UPDATE and UPDATE, DELETE allow no other order; every other valid sequence has a valid reordering.
        """
        first, second = self._markers[self.starts], self._markers[self.starts + 1]
        decided = np.zeros(len(self), bool)
        for one, two in _DECIDED:
            decided |= (first == one) & (second == two)
        return self._only((self._row_counts > 2) | ~decided)

    def that_differ(self, hashes: Numbers) -> RepeatedKeys:
        """Return the keys whose changes are not all the same; `hashes` has a hash of each row's values by its place."""
        marker, value = self._markers, hashes[self._values(PLACE)]
        differs = self._follows[1:] & ((marker[1:] != marker[:-1]) | (value[1:] != value[:-1]))
        chosen = np.zeros(len(self), bool)
        chosen[self._key_numbers[1:][differs]] = True
        return self._only(chosen)

    def are_updated_twice(self) -> bool:
        """Return whether a key has two UPDATEs in a row, which only their values distinguish."""
        is_update = self._markers == Marker.UPDATE
        return bool((is_update[:-1] & is_update[1:] & self._follows[1:]).any())

    def crossings(self, bounds: Numbers) -> Crossings:
        """Return which parts share keys; `bounds[i]` is the place at which part i ends."""
        earlier, later = self._crossings(bounds)[:2]
        return Crossings.between(len(bounds), earlier, later)

    def sample(self, most: int, bounds: Numbers, per_crossing: int) -> RepeatedKeys:
        """Return up to `most` evenly spaced keys, and up to `per_crossing` more for each two parts that share keys.

        The latter are evenly spaced among the keys that have consecutive rows in the two parts.
        """
        chosen = np.zeros(len(self), bool)
        chosen[:: max(1, -(-len(self) // most))] = True
        earlier, later, number = self._crossings(bounds)
        pair = earlier * len(bounds) + later
        order = np.argsort(pair, kind="stable")
        _, starts, sizes = np.unique(pair[order], return_index=True, return_counts=True)
        rank = np.arange(len(order)) - np.repeat(starts, sizes)
        chosen[number[order[rank % np.repeat(-(-sizes // per_crossing), sizes) == 0]]] = True
        return self._only(chosen)

    def _crossings(self, bounds: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return part, next part and key number wherever consecutive rows of a key lie in different parts."""
        part = np.searchsorted(bounds, self._values(PLACE), side="right")
        crosses = self._follows[1:] & (part[1:] != part[:-1])
        return part[:-1][crosses], part[1:][crosses], self._key_numbers[1:][crosses]

    def _only(self, chosen: Flags) -> RepeatedKeys:
        """Return the chosen keys."""
        rows = chosen[self._key_numbers] if len(self) else np.zeros(0, bool)
        return RepeatedKeys(self.every, self.index[rows], np.flatnonzero(~self._follows[rows]))

    @cached_property
    def _row_counts(self) -> Numbers:
        """The number of rows of each key."""
        return np.diff(self.starts, append=len(self.index))

    @cached_property
    def _key_numbers(self) -> Numbers:
        """For each row, the number of its key, from 0."""
        return np.cumsum(~self._follows) - 1

    @cached_property
    def _follows(self) -> Flags:
        """For each row, whether it has the same key as the previous row."""
        follows = np.ones(len(self.index), bool)
        follows[self.starts] = False
        return follows

    @cached_property
    def _markers(self) -> Numbers:
        return self._values(MARKER)

    def _values(self, name: str) -> Numbers:
        values = self.every[name].fill_null(_NO_VERSION).to_numpy()
        return np.asarray(values[self.index], np.int64)


def describe_key(record: SliceRecord, row: Mapping[str, object]) -> str:
    """Return the key of a row, whose columns are named by `aliases`, as text."""
    return shown_key({name: row[alias] for name, alias in zip(record.keys, aliases(record), strict=True)})


def describe_place(staged: StagedSlice, place: int) -> str:
    """Return the row's number and part as text."""
    part, before = [found for found in staged.rows_before.items() if found[1] <= place][-1]
    return f"row {place - before} of {part}"
