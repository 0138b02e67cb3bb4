"""What commits hold by the look of their keys alone: how many rows of each kind, and whether they change keys.

One compiled pass over the key columns of many commits tells, far cheaper than counting rows while they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from mirror_assets.delta.columns import quoted
from mirror_assets.delta.feed_columns import CHANGE_TYPE, COMMIT_VERSION
from mirror_assets.source.row_counts import ReadRows

_LOW_HALF = (1 << 32) - 1
_LOW, _HIGH = "low", "high"


@dataclass(frozen=True)
class CommitRows:
    """A commit's rows, and whether the old keys of its updates are others than the new ones."""

    read: ReadRows
    changes_keys: bool = False

    @property
    def needs_pairing(self) -> bool:
        """Whether it may remove a row and add another of the same key."""
        return self.changes_keys or (self.read.insert > 0 and self.read.delete > 0)


def row_counts() -> list[Column]:
    """What counts rows by kind, each under its name."""
    return [F.count_if(F.col(CHANGE_TYPE) == kind.name).alias(kind.name) for kind in fields(ReadRows)]


def look_at_commits(changes: DataFrame, versions: Sequence[int], keys: Sequence[str]) -> dict[int, CommitRows]:
    """What these versions hold, of a feed's rows; a version without rows is left out."""
    sums = [F.coalesce(F.sum(half), F.lit(0)).alias(name) for name, half in _key_halves(keys).items()]
    found = changes.where(F.col(COMMIT_VERSION).isin(*versions)).groupBy(COMMIT_VERSION)
    return {row[COMMIT_VERSION]: _told(row) for row in found.agg(*row_counts(), *sums).collect()}


def _key_halves(keys: Sequence[str]) -> dict[str, Column]:
    """Both halves of a key's hash, for old rows of updates less than nothing: equal keys sum up to 0."""
    sign = F.when(F.col(CHANGE_TYPE) == "update_postimage", 1).when(F.col(CHANGE_TYPE) == "update_preimage", -1)
    hash_ = F.xxhash64(*(F.col(quoted(key)) for key in keys))
    return {_LOW: hash_.bitwiseAND(_LOW_HALF) * sign, _HIGH: F.shiftright(hash_, 32) * sign}


def _told(row: Row) -> CommitRows:
    return CommitRows(ReadRows.of(row.asDict()), changes_keys=bool(row[_LOW] or row[_HIGH]))
