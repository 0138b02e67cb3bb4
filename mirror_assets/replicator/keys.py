"""Sets of keys, looked up column-wise: NULL equals NULL, any number of columns, no loop over rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


class KeySet:
    """The distinct keys of some rows, each with a number.

    Values of the first key column are numbered; then, column by column, pairs of the number so far and the next
    column's. Numbering the pairs again keeps each number below the count of rows, and equal only for equal keys.
    """

    def __init__(self, rows: pa.Table, keys: Sequence[str]) -> None:
        """Take the keys of `rows`; `keys` names at least one column."""
        self.keys = tuple(keys)
        column = rows[self.keys[0]]
        self._first = known = pc.unique(column)
        self._steps: list[tuple[str, pa.Array, pa.Array]] = []
        for key in self.keys[1:]:
            values = pc.unique(rows[key])
            column = _paired(_lookup(column, known), rows[key], values)
            known = pc.unique(column)
            self._steps.append((key, values, known))

    def codes(self, rows: pa.Table) -> pa.ChunkedArray:
        """Per row the number of its key, or NULL when the key is not in the set."""
        codes = _lookup(rows[self.keys[0]], self._first)
        for key, values, known in self._steps:
            codes = _lookup(_paired(codes, rows[key], values), known)
        return codes


def _lookup(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    return pc.cast(pc.index_in(column, value_set=values, skip_nulls=False), pa.int64())


def _paired(codes: pa.ChunkedArray, column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    return pc.add(pc.multiply(codes, pa.scalar(len(values), pa.int64())), _lookup(column, values))
