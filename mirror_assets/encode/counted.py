"""Counts the rows that Spark reads for a slice, before and after the condition, beside the query that encodes them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from mirror_assets.column_types import LongValues, longest
from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_VERSION, IS_NEW_ROW, projected
from mirror_assets.source.commits import ReadRows
from mirror_assets.source.schema import Projection
from mirror_assets.spark_api import observed

_FACTOR, _PRIME = 2654435761, 1000003
_WEIGHTED = "weighted"


@dataclass(frozen=True)
class Counted:
    """Rows of a slice by change type: those that Spark read, and those of them that meet the condition.

    `weighted` is the sum of the weights of the commits of all rows read, negative for old rows: sums of different
    commits differ, almost always. `long_values` are those of the parts. `changed_keys` are those that a comparison
    of two versions found, each of which lands as one row.
    """

    scanned: ReadRows = field(default_factory=ReadRows)
    landing: ReadRows = field(default_factory=ReadRows)
    weighted: int = 0
    long_values: LongValues = field(default_factory=dict)
    changed_keys: int | None = None

    @classmethod
    def of_commit(cls, version: int, scanned: ReadRows, landing: ReadRows) -> Counted:
        """Return the counts of rows of one commit."""
        more = scanned.insert + scanned.update_postimage - scanned.delete - scanned.update_preimage
        return cls(scanned, landing, more * (version * _FACTOR % _PRIME + 1))

    def __add__(self, other: Counted) -> Counted:
        """Add both."""
        return Counted(
            self.scanned + other.scanned,
            self.landing + other.landing,
            self.weighted + other.weighted,
            longest(self.long_values, other.long_values),
        )


class ObservedRows(NamedTuple):
    """Landing rows, and the Observations that count them while they are written."""

    rows: DataFrame
    scanned: Observation
    landing: Observation

    def counted(self) -> Counted:
        """Return the counts, after the write. A task that Spark ran twice counts twice."""
        read = observed(self.scanned)
        scanned = ReadRows.of(read)
        landing = scanned if self.landing is self.scanned else ReadRows.of(observed(self.landing))
        return Counted(scanned, landing, read[_WEIGHTED])


def observed_changes(changes: DataFrame, projection: Projection) -> ObservedRows:
    """Return the landing rows of change rows, counted before and after the condition."""
    scanned = Observation()
    weight = f"({COMMIT_VERSION} * {_FACTOR}L % {_PRIME} + 1)"
    weighted = F.expr(f"coalesce(sum(IF({IS_NEW_ROW}, {weight}, -{weight})), 0) AS {_WEIGHTED}")
    rows = changes.observe(scanned, *row_counts(), weighted)
    if not projection.where:
        return ObservedRows(projected(rows, projection), scanned, scanned)
    landing = Observation()
    return ObservedRows(projected(rows, projection).observe(landing, *row_counts()), scanned, landing)


def row_counts() -> list[Column]:
    """Return the aggregates that count change rows by change type, each named after its type."""
    return [F.expr(f"count_if({CHANGE_TYPE} = '{kind.name}') AS {kind.name}") for kind in fields(ReadRows)]


def number_of(rows: DataFrame) -> int:
    """Count the rows; reads no column except those of a condition."""
    return int(rows.agg(F.coalesce(F.sum(F.lit(1)), F.lit(0))).collect()[0][0])
