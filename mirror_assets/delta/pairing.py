"""Landed rows of a run of commits: old and new rows of one key and commit paired, by one shuffle and one sort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from mirror_assets.delta.columns import LandedColumn, landed_value, quoted, unused_prefix, values_where
from mirror_assets.delta.cut import CommitSpread
from mirror_assets.delta.feed_columns import COMMIT_VERSION, is_new_row
from mirror_assets.markers import ROW_MARKER, Marker

DUPLICATES = "duplicates"
_LOW_HALF = (1 << 32) - 1


@dataclass(frozen=True)
class Run:
    """Consecutive commits of a slice that are encoded together: a single one that only adds rows, or others."""

    spreads: tuple[CommitSpread, ...]

    @property
    def first(self) -> int:
        """The first commit that changes data."""
        return self.spreads[0].version

    @property
    def last(self) -> int:
        """The last one."""
        return self.spreads[-1].version

    @property
    def only_adds(self) -> bool:
        """Whether no row has to be paired with another."""
        return self.spreads[0].only_adds

    @property
    def first_part(self) -> int:
        """Its first part."""
        return self.spreads[0].first_part

    @property
    def parts(self) -> int:
        """How many parts it has."""
        return max(spread.first_part + spread.parts for spread in self.spreads) - self.first_part


def runs_of(spreads: Sequence[CommitSpread]) -> tuple[Run, ...]:
    """The commits in runs, in order."""
    runs: list[list[CommitSpread]] = []
    for spread in spreads:
        if not runs or spread.only_adds or runs[-1][0].only_adds:
            runs.append([])
        runs[-1].append(spread)
    return tuple(Run(tuple(run)) for run in runs)


def added_rows(changes: DataFrame, run: Run, columns: Sequence[LandedColumn]) -> DataFrame:
    """The landed rows of a commit that only adds some; their order is free, so there is no shuffle."""
    values = [landed_value(column, changes).alias(column.name) for column in columns]
    return changes.select(*values, F.lit(int(Marker.INSERT)).alias(ROW_MARKER)).coalesce(run.parts)


def paired_rows(
    changes: DataFrame, run: Run, columns: Sequence[LandedColumn], keys: Sequence[str], counted: Observation
) -> DataFrame:
    """The landed rows of a feed, in order, one Spark partition per part; `counted` counts duplicate keys on the way."""
    ours = _Names.beside(columns)
    window = Window.partitionBy(ours.order, ours.part, *map(quoted, keys)).orderBy(ours.is_new)
    pairs = (
        _slim(changes, run, columns, keys, ours)
        .repartitionById(run.parts, F.col(ours.part))
        .withColumn(ours.previous, F.lag(ours.is_new).over(window))
        .withColumn(ours.next, F.lead(ours.is_new).over(window))
        .observe(counted, F.count_if(F.col(ours.previous) == F.col(ours.is_new)).alias(DUPLICATES))
    )
    kept = pairs.where(F.col(ours.is_new) | F.col(ours.next).isNull())
    return kept.select(*(F.col(quoted(column.name)) for column in columns), _marker(ours).alias(ROW_MARKER))


@dataclass(frozen=True)
class _Names:
    """Names of the encoder's own columns, none of them a column of the source."""

    part: str
    order: str
    is_new: str
    previous: str
    next: str

    @classmethod
    def beside(cls, columns: Sequence[LandedColumn]) -> _Names:
        """Names that differ from all of these, which Spark compares without case."""
        mark = unused_prefix(columns)
        return cls(*(f"{mark}{name}" for name in ("part", "order", "is_new", "previous", "next")))


def _slim(
    changes: DataFrame, run: Run, columns: Sequence[LandedColumn], keys: Sequence[str], ours: _Names
) -> DataFrame:
    """What goes through the shuffle: old rows carry only their keys, for a DELETE needs no more."""
    is_new, hash_ = is_new_row(), F.hash(*(F.col(quoted(key)) for key in keys))
    return changes.select(
        _part(run, hash_).alias(ours.part),
        _order(run, hash_).alias(ours.order),
        is_new.alias(ours.is_new),
        *values_where(is_new, changes, columns, keys),
    )


def _order(run: Run, hash_: Column) -> Column:
    """By commit, then by the key's hash: Spark sorts by eight bytes of the first column, and looks further at a tie."""
    commit = F.shiftleft(F.col(COMMIT_VERSION) - run.first, 32)
    return commit.bitwiseOR(hash_.cast("long").bitwiseAND(_LOW_HALF))


def _part(run: Run, hash_: Column) -> Column:
    """The part of a row within the run, from the plan alone: no counting pass, no range sampling."""
    first_part = _by_version(run, [spread.first_part - run.first_part for spread in run.spreads])
    parts = _by_version(run, [spread.parts for spread in run.spreads])
    return first_part if all(spread.parts == 1 for spread in run.spreads) else first_part + F.pmod(hash_, parts)


def _by_version(run: Run, values: Sequence[int]) -> Column:
    """The value that belongs to a row's commit, looked up in a constant array."""
    table = [0] * (run.last - run.first + 1)
    for spread, value in zip(run.spreads, values, strict=True):
        table[spread.version - run.first] = value
    index = (F.col(COMMIT_VERSION) - run.first + 1).cast("int")
    return F.element_at(F.lit(table), index) if len(set(values)) > 1 else F.lit(values[0])


def _marker(ours: _Names) -> Column:
    update = F.when(F.col(ours.previous).isNull(), int(Marker.INSERT)).otherwise(int(Marker.UPDATE))
    return F.when(F.col(ours.is_new), update).otherwise(int(Marker.DELETE)).cast("int")
