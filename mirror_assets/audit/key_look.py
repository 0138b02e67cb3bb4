"""One look at the keys of a slice's parts, share by share: all that the checks on keys and on order need of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from mirror_assets.audit.keyed_rows import SHARE_ROWS, aliases, keyed_rows
from mirror_assets.audit.repeats import RepeatedKeys
from mirror_assets.audit.staged import StagedSlice
from mirror_assets.landing.format import SliceKind

SAMPLES = 5
# Of more keys in a share than these, so many are compared, spread evenly: an encoder that errs, errs by rule.
_MOST_KEYS = 1_000


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
    them apart.
    """

    allowed: int = 1
    repeated: int = 0
    too_many: Wrong = field(default_factory=Wrong)
    impossible: Wrong = field(default_factory=Wrong)
    undecided: pa.Table | None = None
    updated_twice: bool = False

    def __add__(self, other: KeyLook) -> KeyLook:
        """Both shares."""
        return KeyLook(
            max(self.allowed, other.allowed),
            self.repeated + other.repeated,
            self.too_many + other.too_many,
            self.impossible + other.impossible,
            _together(self.undecided, other.undecided),
            self.updated_twice or other.updated_twice,
        )


def look_at_keys(staged: StagedSlice, rows_allowed: Callable[[], int], share_rows: int = SHARE_ROWS) -> KeyLook:
    """The look at all shares; a key may have up to `rows_allowed` rows, which is asked for where one has several."""
    looked = partial(_looked, staged, rows_allowed)
    return sum(map(looked, keyed_rows(staged, share_rows)), KeyLook())  # `map` lets a share go before the next is read


def _together(one: pa.Table | None, other: pa.Table | None, most: int | None = None) -> pa.Table | None:
    found = [rows for rows in (one, other) if rows is not None]
    return pa.concat_tables(found).slice(0, most) if found else None


def _looked(staged: StagedSlice, rows_allowed: Callable[[], int], share: pa.Table) -> KeyLook:
    keys = aliases(staged.record)
    repeated = RepeatedKeys.among(share, keys)
    if not len(repeated):
        return KeyLook()
    allowed = rows_allowed()
    too_many = Wrong.of(repeated.with_more_rows(allowed, keys))
    if too_many.found or staged.record.kind is not SliceKind.CHANGES:
        return KeyLook(allowed, len(repeated), too_many)
    impossible, open_ = Wrong.of(repeated.impossible()), repeated.undecided(_MOST_KEYS)
    undecided = open_.rows if len(open_) else None
    return KeyLook(allowed, len(repeated), too_many, impossible, undecided, open_.are_updated_twice())
