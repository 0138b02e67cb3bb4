"""Pairs the old and the new row of each key and commit into one change, in the part that the plan assigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame, Observation, Row, Window
from pyspark.sql import functions as F

from mirror_assets.encode.columns import (
    CHANGE_TYPE,
    COMMIT_VERSION,
    described,
    is_new_row,
    quoted,
    unused_prefix,
    values_where,
)
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.source.batching import PartAssignment
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.schema import LandedColumn

_SAMPLES = 5


def repeated_key_samples(changes: DataFrame, keys: Sequence[str]) -> tuple[str, ...]:
    """Sample keys with two old or two new rows in one commit, as readable text."""
    names = {f"key{index}": key for index, key in enumerate(keys)}
    columns = [F.col(quoted(key)).alias(alias) for alias, key in names.items()]
    grouped = changes.select(F.col(COMMIT_VERSION).alias("version"), is_new_row().alias("is_new"), *columns)
    counted = grouped.groupBy("version", "is_new", *names).agg(F.count(F.lit(1)).alias("rows"))
    rows = counted.where("rows > 1").limit(_SAMPLES).collect()
    shown = [", ".join(f"{key}={row[alias]!r}" for alias, key in names.items()) for row in rows]
    return tuple(f"{key} at version {row['version']}" for key, row in zip(shown, rows, strict=True))


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


DUPLICATES, MISPLACED = "duplicates", "misplaced"
_MARKERS = {"insert": Marker.INSERT, "update_postimage": Marker.UPDATE, "delete": Marker.DELETE}
_UNKNOWN = -1


@dataclass(frozen=True)
class EncodeGroup:
    """Consecutive commits of a slice that are encoded together: a single one without pairing, or others with it."""

    assignments: tuple[PartAssignment, ...]
    unpaired: bool = False

    @property
    def first(self) -> int:
        """The first commit that changes data."""
        return self.assignments[0].version

    @property
    def last(self) -> int:
        """The last one."""
        return self.assignments[-1].version

    @property
    def first_part(self) -> int:
        """Its first part."""
        return self.assignments[0].first_part

    @property
    def parts(self) -> int:
        """How many parts it has."""
        return max(assignment.first_part + assignment.parts for assignment in self.assignments) - self.first_part

    def commits_of(self, index: int) -> tuple[int, int]:
        """The first and the last commit whose rows Spark partition `index` writes.

        With pairing, a partition is a part of the plan. Without, there is one commit, and partitions are the scan's.
        """
        if len(self.assignments) == 1:
            return self.first, self.first
        part = self.first_part + index
        held = [
            assignment.version
            for assignment in self.assignments
            if assignment.first_part <= part < assignment.first_part + assignment.parts
        ]
        return held[0], held[-1]


def runs_of(assignments: Sequence[PartAssignment]) -> tuple[EncodeGroup, ...]:
    """The commits in runs, in order."""
    groups: list[list[PartAssignment]] = []
    for assignment in assignments:
        if not groups or assignment.unpaired or groups[-1][0].unpaired:
            groups.append([])
        groups[-1].append(assignment)
    return tuple(EncodeGroup(tuple(group), group[0].unpaired) for group in groups)


def unpaired_rows(
    changes: DataFrame, read: ReadRows, columns: Sequence[LandedColumn], keys: Sequence[str], footer: Mapping[str, str]
) -> DataFrame:
    """The landed rows of a commit as they are read; their order is free, so there is no shuffle.

    What `read` says of all its rows need not be asked of each.
    """
    landing = changes.where(F.col(CHANGE_TYPE) != "update_preimage") if read.update_preimage else changes
    values = values_where(_has_values(read), changes, columns, keys)
    rows = landing.select(*values, _marker_of(read).cast("int").alias(ROW_MARKER))
    return rows.select(*described(columns, footer), ROW_MARKER)


def _has_values(read: ReadRows) -> Column:
    """Whether a row brings values: a DELETE has its key alone."""
    if read.delete in (0, read.changes):
        return F.lit(read.delete == 0)
    return is_new_row()


def _marker_of(read: ReadRows) -> Column:
    kinds = [kind for kind in _MARKERS if getattr(read, kind)]
    if len(kinds) == 1:
        return F.lit(int(_MARKERS[kinds[0]]))
    told = (F.when(F.col(CHANGE_TYPE) == kind, int(marker)) for kind, marker in _MARKERS.items())
    # Never NULL, so that the column is the same in every file of a slice; no check lets the last one pass.
    return F.coalesce(*told, F.lit(_UNKNOWN))


def paired_rows(
    changes: DataFrame, group: EncodeGroup, columns: Sequence[LandedColumn], keys: Sequence[str]
) -> DataFrame:
    """The rows of a feed, in order, one Spark partition per part, each with its part and what its pair tells."""
    ours = _Names.beside(columns)
    window = Window.partitionBy(ours.order, ours.part, *map(quoted, keys)).orderBy(ours.is_new)
    return (
        _slim(changes, group, columns, keys, ours)
        .repartitionById(group.parts, F.col(ours.part))
        .withColumn(ours.previous, F.lag(ours.is_new).over(window))
        .withColumn(ours.next, F.lead(ours.is_new).over(window))
    )


def landed_in_parts(
    pairs: DataFrame, columns: Sequence[LandedColumn], footer: Mapping[str, str], counted: Observation
) -> DataFrame:
    """The landed rows of `paired_rows`; `counted` counts rows that repeat a key, and rows that are out of place.

    Those are the rows in another Spark partition than their part: a partition becomes the file that is called by its
    index, and what comes behind the exchange may move partitions. `coalesce` does, even where their number stays the
    same. So this has to be the last that happens to the rows.
    """
    ours = _Names.beside(columns)
    placed = pairs.withColumn(ours.index, F.spark_partition_id()).observe(
        counted,
        F.count_if(F.col(ours.previous) == F.col(ours.is_new)).alias(DUPLICATES),
        F.count_if(F.col(ours.part) != F.col(ours.index)).alias(MISPLACED),
    )
    lands = F.col(ours.is_new) | F.col(ours.next).isNull()
    return placed.where(lands).select(*described(columns, footer), _marker(ours).alias(ROW_MARKER))


@dataclass(frozen=True)
class _Names:
    """Names of the encoder's own columns, none of them a column of the source."""

    part: str
    order: str
    is_new: str
    previous: str
    next: str
    index: str

    @classmethod
    def beside(cls, columns: Sequence[LandedColumn]) -> _Names:
        """Names that differ from all of these, which Spark compares without case."""
        mark = unused_prefix(columns)
        return cls(*(f"{mark}{name}" for name in ("part", "order", "is_new", "previous", "next", "index")))


def _slim(
    changes: DataFrame, group: EncodeGroup, columns: Sequence[LandedColumn], keys: Sequence[str], ours: _Names
) -> DataFrame:
    """What goes through the shuffle: old rows carry only their keys, for a DELETE needs no more."""
    is_new, hash_ = is_new_row(), F.hash(*(F.col(quoted(key)) for key in keys))
    return changes.select(
        _part(group, hash_).alias(ours.part),
        _order(hash_).alias(ours.order),
        is_new.alias(ours.is_new),
        *values_where(is_new, changes, columns, keys),
    )


def _order(hash_: Column) -> Column:
    """By commit, then by the key's hash: Spark sorts by eight bytes of the first column, and looks further at a tie.

    No number of this slice is in it: Spark would compile the sort anew for every slice.
    """
    commit = F.shiftleft(F.col(COMMIT_VERSION), 32)
    return commit.bitwiseOR(hash_.cast("long").bitwiseAND(_LOW_HALF))


def _part(group: EncodeGroup, hash_: Column) -> Column:
    """The part of a row within the run, from the plan alone: no counting pass, no range sampling."""
    first_part = _by_version(group, [assignment.first_part - group.first_part for assignment in group.assignments])
    parts = _by_version(group, [assignment.parts for assignment in group.assignments])
    return (
        first_part
        if all(assignment.parts == 1 for assignment in group.assignments)
        else first_part + F.pmod(hash_, parts)
    )


def _by_version(group: EncodeGroup, values: Sequence[int]) -> Column:
    """The value that belongs to a row's commit, looked up in a constant array."""
    table = [0] * (group.last - group.first + 1)
    for assignment, value in zip(group.assignments, values, strict=True):
        table[assignment.version - group.first] = value
    index = (F.col(COMMIT_VERSION) - group.first + 1).cast("int")
    return F.element_at(F.lit(table), index) if len(set(values)) > 1 else F.lit(values[0])


def _marker(ours: _Names) -> Column:
    update = F.when(F.col(ours.previous).isNull(), int(Marker.INSERT)).otherwise(int(Marker.UPDATE))
    return F.when(F.col(ours.is_new), update).otherwise(int(Marker.DELETE)).cast("int")
