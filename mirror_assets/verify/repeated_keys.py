"""Summarize the keys that occur in several rows of a slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from mirror_assets.landing.format import SliceKind, SliceRecord
from mirror_assets.markers import Marker
from mirror_assets.verify.keys import MARKER, PLACE, SHARE_ROWS, VERSION, aliases, codes_of, keyed_rows
from mirror_assets.verify.part_swaps import Crossings, Flags
from mirror_assets.verify.staged import Numbers, StagedSlice

ROWS = "rows"
_NO_VERSION = -1
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
    """Keys that occur in more than one of `every` row (see `keyed_rows`).

    `index` has the rows of these keys, by key and in order; `starts` where in it each key begins.
    """

    every: pa.Table
    index: Numbers
    starts: Numbers

    @classmethod
    def among(cls, every: pa.Table, keys: Sequence[str]) -> RepeatedKeys:
        """The keys that are repeated in these rows."""
        index, follows = codes_of(every, keys).in_order()
        repeated = follows.copy()
        repeated[:-1] |= follows[1:]
        return cls(every, index[repeated], np.flatnonzero(~follows[repeated]))

    def __len__(self) -> int:
        """The number of keys."""
        return len(self.starts)

    def with_more_rows(self, allowed: int, keys: Sequence[str]) -> pa.Table:
        """The keys that have more rows, each once with their number."""
        many = self._rows > allowed
        found = self.every.select(list(keys)).take(pa.array(self.index[self.starts[many]]))
        return found.append_column(ROWS, pa.array(self._rows[many]))

    def impossible(self) -> pa.Table:
        """Rows whose marker can't follow that of the key's row before, or that are of the same commit."""
        marker, version = self._markers, self._values(VERSION)
        was_there, inserts = marker[:-1] != Marker.DELETE, marker[1:] == Marker.INSERT
        is_again = (version[:-1] == version[1:]) & (version[1:] != _NO_VERSION)
        wrong = np.flatnonzero(self._follows[1:] & (is_again | (was_there == inserts))) + 1
        return self.every.take(pa.array(self.index[wrong]))

    def undecided(self) -> RepeatedKeys:
        """Keys whose markers would also allow another order.

        Decided are an INSERT with its UPDATE and an UPDATE with its DELETE alone: all else that makes sense makes sense
        in another order, too.
        """
        first, second = self._markers[self.starts], self._markers[self.starts + 1]
        decided = np.zeros(len(self), bool)
        for one, two in _DECIDED:
            decided |= (first == one) & (second == two)
        return self._only((self._rows > 2) | ~decided)

    def that_differ(self, hashes: Numbers) -> RepeatedKeys:
        """Keys whose changes are not all the same; `hashes` has one of a row's values for each place."""
        marker, value = self._markers, hashes[self._values(PLACE)]
        differs = self._follows[1:] & ((marker[1:] != marker[:-1]) | (value[1:] != value[:-1]))
        chosen = np.zeros(len(self), bool)
        chosen[self._number[1:][differs]] = True
        return self._only(chosen)

    def crossings(self, bounds: Numbers) -> Crossings:
        """Which parts share a key of these; `bounds` are the places at which parts end."""
        earlier, later = self._crossing(bounds)[:2]
        return Crossings.between(len(bounds), earlier, later)

    def sample(self, most: int, bounds: Numbers, per_crossing: int) -> RepeatedKeys:
        """Some keys: up to `most` spread evenly, and up to `per_crossing` of those that two parts share.

        The latter are of any two parts between which a key goes on, and spread evenly, too.
        """
        chosen = np.zeros(len(self), bool)
        chosen[:: max(1, -(-len(self) // most))] = True
        earlier, later, number = self._crossing(bounds)
        pair = earlier * len(bounds) + later
        order = np.argsort(pair, kind="stable")
        _, starts, sizes = np.unique(pair[order], return_index=True, return_counts=True)
        rank = np.arange(len(order)) - np.repeat(starts, sizes)
        chosen[number[order[rank % np.repeat(-(-sizes // per_crossing), sizes) == 0]]] = True
        return self._only(chosen)

    def are_updated_twice(self) -> bool:
        """Whether a row updates what the one before it has updated: only values tell them apart."""
        is_update = self._markers == Marker.UPDATE
        return bool((is_update[:-1] & is_update[1:] & self._follows[1:]).any())

    def parts(self, bounds: Numbers) -> Numbers:
        """The number of the part that each row is in, by key and in order."""
        return np.searchsorted(bounds, self._values(PLACE), side="right")

    def _crossing(self, bounds: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Wherever a key goes on in another part: the part, the next one, and the number of the key."""
        part = self.parts(bounds)
        crosses = self._follows[1:] & (part[1:] != part[:-1])
        return part[:-1][crosses], part[1:][crosses], self._number[1:][crosses]

    def _only(self, chosen: Flags) -> RepeatedKeys:
        """Those of the keys."""
        rows = chosen[self._number] if len(self) else np.zeros(0, bool)
        return RepeatedKeys(self.every, self.index[rows], np.flatnonzero(~self._follows[rows]))

    @property
    def rows(self) -> pa.Table:
        """Their rows, by key and in order."""
        return self.every.take(pa.array(self.index))

    @cached_property
    def _rows(self) -> Numbers:
        """How many rows each key has."""
        return np.diff(self.starts, append=len(self.index))

    @cached_property
    def _number(self) -> Numbers:
        """The number of the key that each row has, from 0."""
        return np.cumsum(~self._follows) - 1

    @cached_property
    def _follows(self) -> Flags:
        """Whether each row has the key of the one before it."""
        follows = np.ones(len(self.index), bool)
        follows[self.starts] = False
        return follows

    @cached_property
    def _markers(self) -> Numbers:
        return self._values(MARKER)

    def _values(self, name: str) -> Numbers:
        values = self.every[name].fill_null(_NO_VERSION).to_numpy()
        return np.asarray(values[self.index], np.int64)


SAMPLES = 5
# Of more keys in a share than these, so many are compared, spread evenly: an encoder that errs, errs by rule.
_MOST_KEYS = 1_000
# So many more of those that two parts share, for parts in each other's place err by no rule.
_PER_CROSSING = 4


@dataclass(frozen=True)
class Wrong:
    """How many were found wrong, and a table of some: a key and its `rows`, or a row with its `marker` and `place`."""

    found: int = 0
    samples: pa.Table | None = None

    @classmethod
    def of(cls, rows: pa.Table) -> Wrong:
        """All these rows."""
        return cls(len(rows), rows.slice(0, SAMPLES)) if len(rows) else cls()

    def __add__(self, other: Wrong) -> Wrong:
        """Both together."""
        return Wrong(self.found + other.found, _together(self.samples, other.samples, SAMPLES))


@dataclass(frozen=True)
class KeyLook:
    """What a slice's parts say of its keys.

    `repeated` keys have more than one row; `too_many` more than is `allowed`; of the rows `impossible` can't follow
    those before them. `undecided` are the rows, by key and in order, of keys whose rows could stand in another order
    (of some, if they are many), and None where there is none; `updated_twice` says whether only values can tell two of
    them apart. `crossings` are of all these keys, whether they are among the `undecided` or not.
    """

    allowed: int = 1
    repeated: int = 0
    too_many: Wrong = field(default_factory=Wrong)
    impossible: Wrong = field(default_factory=Wrong)
    undecided: pa.Table | None = None
    updated_twice: bool = False
    crossings: Crossings | None = None

    def __add__(self, other: KeyLook) -> KeyLook:
        """Both shares."""
        return KeyLook(
            max(self.allowed, other.allowed),
            self.repeated + other.repeated,
            self.too_many + other.too_many,
            self.impossible + other.impossible,
            _together(self.undecided, other.undecided),
            self.updated_twice or other.updated_twice,
            _sum(self.crossings, other.crossings),
        )


def look_at_keys(staged: StagedSlice, rows_allowed: Callable[[], int], share_rows: int = SHARE_ROWS) -> KeyLook:
    """The look at all shares; a key may have up to `rows_allowed` rows, which is asked for where one has several."""
    looked = partial(_looked, staged, rows_allowed)
    return sum(map(looked, keyed_rows(staged, share_rows)), KeyLook())  # `map` lets a share go before the next is read


def _together(one: pa.Table | None, other: pa.Table | None, most: int | None = None) -> pa.Table | None:
    found = [rows for rows in (one, other) if rows is not None]
    return pa.concat_tables(found).slice(0, most) if found else None


def _sum(one: Crossings | None, other: Crossings | None) -> Crossings | None:
    return one + other if one and other else one or other


def _looked(staged: StagedSlice, rows_allowed: Callable[[], int], share: pa.Table) -> KeyLook:
    keys = aliases(staged.record)
    repeated = RepeatedKeys.among(share, keys)
    if not len(repeated):
        return KeyLook()
    allowed = rows_allowed()
    too_many = Wrong.of(repeated.with_more_rows(allowed, keys))
    if too_many.found or staged.record.kind is not SliceKind.CHANGES:
        return KeyLook(allowed, len(repeated), too_many)
    impossible, open_ = Wrong.of(repeated.impossible()), repeated.undecided()
    if not len(open_):
        return KeyLook(allowed, len(repeated), too_many, impossible)
    some = open_.sample(_MOST_KEYS, staged.bounds, _PER_CROSSING)
    twice, crossings = some.are_updated_twice(), open_.crossings(staged.bounds)
    return KeyLook(allowed, len(repeated), too_many, impossible, some.rows, twice, crossings)


def keys_that_differ(
    staged: StagedSlice, hashes: Numbers, per_crossing: int, share_rows: int = SHARE_ROWS
) -> tuple[pa.Table | None, Crossings]:
    """Rows of keys whose changes are not all the same, by key and in order; of many keys, so many for two parts.

    `hashes` has one of a row's values for each place. The crossings are those of all such keys.
    """
    found, crossings = None, Crossings.none(len(staged.bounds))
    for share in keyed_rows(staged, share_rows):
        differ = RepeatedKeys.among(share, aliases(staged.record)).undecided().that_differ(hashes)
        if len(differ):
            found = _together(found, differ.sample(_MOST_KEYS, staged.bounds, per_crossing).rows)
            crossings += differ.crossings(staged.bounds)
    return found, crossings
