"""The live files of a version as columns: of a large table, they take a tenth of the memory of Python's objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.source.actions import BYTES_PER_ROW, Actions, LiveFile, Tombstone

# Of more than 2 GiB, `string` has no single column.
NAMED_FILES = pa.schema(
    {
        "path": pa.large_string(),
        "vector": pa.large_string(),
        "bytes": pa.int64(),
        "rows": pa.int64(),
        "live": pa.bool_(),
    }
)
"""The files that actions name, a row each: identity (see `LiveFile`), size, stored rows, whether they are added."""

_Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LiveFileColumns:
    """The live files of a version, in the order that a Snapshot has them in."""

    named: pa.Table

    def __len__(self) -> int:
        """The number of files."""
        return int(self.named.num_rows)

    @cached_property
    def bytes(self) -> _Longs:
        """The size of each."""
        size: _Longs = self.named["bytes"].to_numpy()
        return size

    @cached_property
    def likely_rows(self) -> _Longs:
        """The best guess at the number of stored rows of each, as `LiveFile.likely_rows`."""
        guessed = pc.divide(self.named["bytes"], BYTES_PER_ROW)
        rows: _Longs = pc.coalesce(self.named["rows"], guessed).to_numpy()
        return rows

    def identities(self, first: int, end: int) -> frozenset[tuple[str, str]]:
        """Return the identities of the files `first` to `end` - 1."""
        some = self.named.slice(first, end - first)
        return frozenset(zip(some["path"].to_pylist(), some["vector"].to_pylist(), strict=True))


def named_files(actions: Actions) -> pa.Table:
    """Return the files that these actions name, by NAMED_FILES: within a commit, an add counts after a remove."""
    files: tuple[LiveFile | Tombstone, ...] = (*actions.removed, *actions.added)
    added = [False] * len(actions.removed) + [True] * len(actions.added)
    paths, vectors = zip(*(file.identity for file in files), strict=True) if files else ((), ())
    return pa.table(
        [paths, vectors, [file.bytes for file in files], [file.rows for file in files], added], schema=NAMED_FILES
    )


def replayed(steps: Iterable[pa.Table]) -> LiveFileColumns:
    """Return the files that are live after these steps: the last action that names a file counts."""
    named = pa.concat_tables(steps)
    order = pc.sort_indices(named, [("path", "ascending"), ("vector", "ascending")])  # stable
    is_last = np.ones(len(named), np.bool_)
    if len(named) > 1:
        is_last[:-1] = ~(_equals_next(named["path"].take(order)) & _equals_next(named["vector"].take(order)))
    is_live = named["live"].take(order).to_numpy()
    return LiveFileColumns(named.take(order.filter(pa.array(is_last & is_live))))


def _equals_next(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    are_equal: npt.NDArray[np.bool_] = pc.equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy()
    return are_equal
