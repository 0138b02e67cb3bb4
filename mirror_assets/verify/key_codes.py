"""Keys as numbers: equal for equal keys only, and small enough to be sorted together with their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]
# A code below this has room for 22 bits beside it: of as many rows as a share has.
_MOST = 1 << 41


@dataclass(frozen=True)
class Codes:
    """A number from 0 to `below` for each row."""

    numbers: Numbers
    below: int

    def and_(self, other: Codes) -> Codes:
        """A number for each pair. Both are below 2^41, and one of them is at most the number of rows, or made so."""
        one = self if self.below * other.below < 1 << 62 else self.dense()
        pairs = Codes(one.numbers * other.below + other.numbers, one.below * other.below)
        return pairs if pairs.below <= _MOST else pairs.dense()

    def dense(self) -> Codes:
        """The same keys told apart by as few numbers as there are keys."""
        found, numbers = np.unique(self.numbers, return_inverse=True)
        return Codes(numbers.astype(np.int64), len(found))

    def in_order(self) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """The rows' indices by key, those of a key in their order, and whether each has the key of the one before."""
        width = max(1, (len(self.numbers) - 1).bit_length())
        codes = self if (self.below - 1).bit_length() + width < 63 else self.dense()
        places = np.arange(len(self.numbers), dtype=np.int64)
        both = np.sort((codes.numbers << width) | places)
        keys = both >> width
        return both & ((1 << width) - 1), np.concatenate([np.zeros(1, bool), keys[1:] == keys[:-1]])


def codes_of(rows: pa.Table, keys: Sequence[str]) -> Codes:
    """A code for each row, of a table that has rows. Keys are never NULL, floating-point or nested by then."""
    first, *others = (_of_column(rows[key].combine_chunks()) for key in keys)
    for other in others:
        first = first.and_(other)
    return first


def whole_numbers(column: pa.Array) -> Numbers | None:
    """The values of a type that fits into 64 bits, as whole numbers; None of another type."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _of_column(column: pa.Array) -> Codes:
    numbers = whole_numbers(column)
    if numbers is not None and (below := int(numbers.max()) - (least := int(numbers.min())) + 1) <= _MOST:
        return Codes(numbers - least, below)
    encoded = pc.dictionary_encode(column)
    return Codes(np.asarray(encoded.indices.to_numpy()).astype(np.int64), len(encoded.dictionary))
