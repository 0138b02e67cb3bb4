"""Inspect the keys that occur in several rows of a slice's parts: what their markers alone tell of the rows' order.

The checks `key_uniqueness` and `row_order` share one pass over all keys.
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
from mirror_assets.verify.keys import MARKER, PLACE, SHARE_ROWS, VERSION, aliases, codes_of, maybe_repeated, read_keys
from mirror_assets.verify.part_swaps import Crossings, Flags
from mirror_assets.verify.staged import Numbers, StagedSlice

ROWS = "rows"
SAMPLES = 5
# Of more undecided keys in a share, so many are compared, spread evenly: an encoder that errs, errs by rule.
_MOST_KEYS = 1_000
# So many more for each two parts that share keys: parts in each other's place err by no rule.
_PER_CROSSING = 4
_NO_VERSION = -1
# Pairs of changes of a key that allow no other order.
_DECIDED = ((Marker.INSERT, Marker.UPDATE), (Marker.UPDATE, Marker.DELETE))


@dataclass(frozen=True)
class Violations:
    """How many keys or rows violate a rule, and a table of some: keys with their `rows`, or rows."""

    count: int = 0
    samples: pa.Table | None = None

    @classmethod
    def of(cls, found: pa.Table) -> Violations:
        """Return a violation for each row of the table."""
        return cls(len(found), found.slice(0, SAMPLES)) if len(found) else cls()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The samples, row by row."""
        return [] if self.samples is None else self.samples.to_pylist()

    def __add__(self, other: Violations) -> Violations:
        """Add those of another share."""
        return Violations(self.count + other.count, _concat(self.samples, other.samples, SAMPLES))


@dataclass(frozen=True)
class KeyInspection:
    """What the parts of a slice tell of its keys.

    `repeated` keys have several rows, `too_many` of them more than `allowed`. The rows `impossible` can't follow the
    key's row before them. `undecided` has the rows, by key and in order, of keys whose markers would also allow another
    order (of a sample, if they are many); None if there is no such key. `updated_twice` tells whether values are needed
    to tell their rows apart. `crossings` are those of all undecided keys, in the sample or not.
    """

    allowed: int = 1
    repeated: int = 0
    too_many: Violations = field(default_factory=Violations)
    impossible: Violations = field(default_factory=Violations)
    undecided: pa.Table | None = None
    updated_twice: bool = False
    crossings: Crossings | None = None

    def __add__(self, other: KeyInspection) -> KeyInspection:
        """Add that of another share."""
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
    """Inspect all keys, share by share.

    `rows_allowed` returns how many rows a key may have. It is called only if some key has several.
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
    """Return rows of undecided keys whose changes are not all the same, by key and in order, and all such crossings.

    `hashes` has a hash of each row's values by its place. Of many keys, a sample is returned, with `per_crossing` keys
    for each two parts that share some.
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
    """Keys that occur in several rows of `every`, a table as `read_keys` yields it.

    `index` has the indices of their rows, by key and in order; `starts` the positions in `index` where keys begin.
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
        """Their rows, by key and in order."""
        return self.every.take(pa.array(self.index))

    def with_more_rows(self, allowed: int, keys: Sequence[str]) -> pa.Table:
        """Return the keys with more rows than allowed, each once with its number of `rows`."""
        many = self._row_counts > allowed
        found = self.every.select(list(keys)).take(pa.array(self.index[self.starts[many]]))
        return found.append_column(ROWS, pa.array(self._row_counts[many]))

    def impossible(self) -> pa.Table:
        """Return the rows whose marker can't follow that of the key's row before, or that are of the same commit."""
        marker, version = self._markers, self._values(VERSION)
        was_there, inserts = marker[:-1] != Marker.DELETE, marker[1:] == Marker.INSERT
        is_again = (version[:-1] == version[1:]) & (version[1:] != _NO_VERSION)
        wrong = np.flatnonzero(self._follows[1:] & (is_again | (was_there == inserts))) + 1
        return self.every.take(pa.array(self.index[wrong]))

    def undecided(self) -> RepeatedKeys:
        """Return the keys whose markers would also allow another order.

        Only two sequences allow no other: INSERT, UPDATE, and UPDATE, DELETE. All others that are possible are possible
        in another order, too.
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
        """Whether an UPDATE follows an UPDATE of its key: only values tell these rows apart."""
        is_update = self._markers == Marker.UPDATE
        return bool((is_update[:-1] & is_update[1:] & self._follows[1:]).any())

    def crossings(self, bounds: Numbers) -> Crossings:
        """Return which parts share a key; `bounds` are the places where parts end."""
        earlier, later = self._crossings(bounds)[:2]
        return Crossings.between(len(bounds), earlier, later)

    def sample(self, most: int, bounds: Numbers, per_crossing: int) -> RepeatedKeys:
        """Return up to `most` keys, spread evenly, and up to `per_crossing` more for each two parts that share some.

        The latter are keys that go on from one of the parts to the other, spread evenly, too.
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
        """Return, wherever a key goes on in another part: the part, the next one, and the number of the key."""
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
        """For each row, whether it has the key of the one before."""
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
    return ", ".join(f"{name}={row[alias]!r}" for name, alias in zip(record.keys, aliases(record), strict=True))


def describe_place(staged: StagedSlice, place: int) -> str:
    """Return the row's number and part as text."""
    part, before = [found for found in staged.rows_before.items() if found[1] <= place][-1]
    return f"row {place - before} of {part}"
