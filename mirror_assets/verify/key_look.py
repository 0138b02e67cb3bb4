"""One look at the keys of a slice's parts, share by share: all that the checks on keys and on order need of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from mirror_assets.landing.format import SliceKind
from mirror_assets.verify.key_codes import Numbers
from mirror_assets.verify.keyed_rows import SHARE_ROWS, aliases, keyed_rows
from mirror_assets.verify.part_swaps import Crossings
from mirror_assets.verify.repeats import RepeatedKeys
from mirror_assets.verify.staged import StagedSlice

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
