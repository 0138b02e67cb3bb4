"""Check that the changes of a key are in commit order, by comparing the rows of each commit with the change feed.

The encoder writes the changes of a slice commit by commit. So the feed's rows per commit determine which rows of the
parts are the commit's, and the rows of both must have the same hashes, in any order. In a commit, the feed has a new
row for each INSERT and UPDATE, and an old row for each UPDATE and DELETE.

Most slices need no comparison: an INSERT precedes the UPDATE of its key, an UPDATE the DELETE, and `key_uniqueness`
checks that. Only keys whose markers also allow another order need one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.encode.columns import COMMIT_VERSION, is_new_row, landed_value, projected
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.redaction import shown_key
from mirror_assets.source.scan import Scan
from mirror_assets.source.schema import ALL_ROWS, LandedColumn, Projection
from mirror_assets.spark_messages import readable
from mirror_assets.spark_names import quoted
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.staged import PART_NUMBER, ROW_INDEX, Numbers, StagedSlice
from mirror_assets.verify.uniqueness import KeyInspection

_SAMPLES = 5
_LOW_HALF = (1 << 32) - 1
_PLACE, _VERSION, _IS_NEW, _IS_OLD = "place", "version", "is_new", "is_old"
_NEW, _OLD, _KEY, _UNCHANGED = "new", "old", "key", "__unchanged__"


@dataclass(frozen=True)
class CommitSums:
    """The new and the old rows of a commit: how many each are, and two sums of their hashes."""

    new: int = 0
    old: int = 0
    hashes: tuple[int, int] = (0, 0)

    @property
    def rows(self) -> int:
        """All rows."""
        return self.new + self.old

    def __add__(self, other: CommitSums) -> CommitSums:
        """Add both; sums of hashes are those of 64 bits."""
        low, high = ((a + b) % (1 << 64) for a, b in zip(self.hashes, other.hashes, strict=True))
        return CommitSums(self.new + other.new, self.old + other.old, (low, high))


@dataclass(frozen=True)
class CommitPlaces:
    """The rows of a commit in the parts of a slice: those at the places `start` to `end` - 1."""

    version: int
    start: int
    end: int


class ChangeReader(Protocol):
    """Reads the changes of a slice from the change feed and from its parts. Methods raise what `spark_errors` raises.

    A new row has the hash of its values, or only of its key without `with_values`; an old row has another hash of its
    key.
    """

    def feed_sums(self, *, with_values: bool) -> dict[int, CommitSums]:
        """Return the sums of each commit that has rows in the feed, by version, in order."""

    def part_sums(self, commits: Sequence[CommitPlaces], *, with_values: bool) -> dict[int, CommitSums]:
        """Return the sums of each commit that has rows in the parts, by version."""

    def differing_keys(self, commit: CommitPlaces, *, with_values: bool) -> list[str]:
        """Return some keys, as text, of which the feed and the parts have different rows in this commit."""


class KeySums(Protocol):
    """Reads what a `ChangeReader` does without values, as far as it can: `feed_sums` is None where it can't."""

    def feed_sums(self) -> dict[int, CommitSums] | None:
        """Return the sums of each commit that has rows in the feed, by version, in order."""

    def part_sums(self, commits: Sequence[CommitPlaces]) -> dict[int, CommitSums]:
        """Return the sums of each commit that has rows in the parts, by version."""


def row_order(
    staged: StagedSlice,
    keys: KeyInspection,
    reader: ChangeReader,
    key_sums: Callable[[], KeySums | None] = lambda: None,
) -> CheckResult:
    """Check that keys with several changes appear in commit order, where their markers would also allow another order.

    Reads nothing if there are no such keys: rows of different keys may come in any order. Reads values only if two rows
    of a key have the same marker: then nothing else distinguishes them. `key_sums` are enough if they are equal; if
    not, `reader` reads all again, and decides. Raises what `spark_errors` raises.
    """
    metadata: dict[str, int | float | str] = {"repeated_keys": keys.repeated, "commits_compared": 0}
    if not keys.order_is_open:
        return CheckResult("row_order", metadata=metadata)
    quick = None if keys.values_decide else key_sums()
    wanted = quick.feed_sums() if quick is not None else None
    if quick is not None and wanted:
        commits = _places(staged, wanted)
        if not _wrong(commits, wanted, quick.part_sums(commits)):
            return CheckResult("row_order", metadata={**metadata, "commits_compared": len(commits)})
    wanted = reader.feed_sums(with_values=keys.values_decide)
    commits = _places(staged, wanted)
    wrong = _wrong(commits, wanted, reader.part_sums(commits, with_values=keys.values_decide) if commits else {})
    problems = [] if commits else ["the change feed has no rows of this slice"]
    for commit in wrong[:1]:
        named = reader.differing_keys(commit, with_values=keys.values_decide)
        such = f": {', '.join(f'key {key}' for key in named)}" if named else ""
        where = staged.describe_place(commit.start)
        problems.append(f"the rows from {where} on are not those of version {commit.version} in the change feed{such}")
    return CheckResult("row_order", tuple(problems), {**metadata, "commits_compared": len(commits)})


def _wrong(
    commits: Sequence[CommitPlaces], wanted: Mapping[int, CommitSums], found: Mapping[int, CommitSums]
) -> list[CommitPlaces]:
    return [commit for commit in commits if found.get(commit.version) != wanted[commit.version]]


def _places(staged: StagedSlice, wanted: Mapping[int, CommitSums]) -> list[CommitPlaces]:
    """Return the rows of each commit, if the parts have the feed's rows, commit by commit; the last has all others.

    Markers are read only of parts in which a commit ends before the part does.
    """
    if not wanted:
        return []
    ends = _places_of(staged, np.cumsum([sums.rows for sums in wanted.values()], dtype=np.int64))
    ends[-1] = staged.record.markers.total
    return [CommitPlaces(version, *bounds) for version, bounds in zip(wanted, pairwise([0, *ends]), strict=True)]


def _places_of(staged: StagedSlice, totals: Numbers) -> list[int]:
    """Return for each number of the feed's rows the place up to which the parts have as many; an update has two."""
    weights = [part.markers.total + part.markers.updates for part in staged.record.parts]
    ends, ends_of_parts, place = list[int](), np.cumsum(weights, dtype=np.int64), 0
    of_part = np.searchsorted(ends_of_parts, totals)
    for number, (part, weight) in enumerate(zip(staged.record.parts, weights, strict=True)):
        wanted = totals[of_part == number] - (ends_of_parts[number] - weight)
        if (wanted < weight).any():
            with staged.open(staged.path(part.name)) as file:
                markers = file.read([ROW_MARKER]).column(ROW_MARKER).to_numpy()
            inside = 1 + np.searchsorted(np.cumsum(1 + (markers == Marker.UPDATE), dtype=np.int64), wanted)
        else:
            inside = np.full(len(wanted), part.markers.total)
        ends += (place + inside).tolist()
        place += part.markers.total
    return ends + [place] * (len(totals) - len(ends))


@dataclass(frozen=True)
class SparkChangeReader:
    """A ChangeReader on Spark; calls `spark` and `scan` at the first read. `columns` are all landed columns."""

    spark: Callable[[], SparkSession]
    staged: StagedSlice
    scan: Callable[[], Scan]
    columns: tuple[LandedColumn, ...]
    projection: Projection = ALL_ROWS

    def feed_sums(self, *, with_values: bool) -> dict[int, CommitSums]:
        """Return the sums by version, see ChangeReader."""
        with self._errors():
            return _sums(self._feed(with_values=with_values))

    def part_sums(self, commits: Sequence[CommitPlaces], *, with_values: bool) -> dict[int, CommitSums]:
        """Return the sums by version, see ChangeReader."""
        from pyspark.ml.feature import Bucketizer  # loads pandas

        with self._errors():
            with_rows = [commit for commit in commits if commit.start < commit.end]
            starts = [-float("inf"), *(float(commit.start) for commit in with_rows), float("inf")]
            # A join with the commits would cost a new process 2 s more, in which Spark compiles it.
            number_of_commit = Bucketizer(splits=starts, inputCol=_PLACE, outputCol=_VERSION)
            sums = _sums(number_of_commit.transform(self._parts(with_values=with_values)))
            return {with_rows[int(number) - 1].version: of_commit for number, of_commit in sums.items()}

    def differing_keys(self, commit: CommitPlaces, *, with_values: bool) -> list[str]:
        """Return some keys, see ChangeReader."""
        with self._errors():
            wanted = self._feed(with_values=with_values).where(F.col(_VERSION) == commit.version)
            found = self._parts(with_values=with_values).where(F.col(_PLACE).between(commit.start, commit.end - 1))
            one, other = _single_rows(wanted), _single_rows(found)
            differing = one.exceptAll(other).union(other.exceptAll(one)).select(_KEY).distinct().limit(_SAMPLES)
            return [shown_key(row.asDict()) for row in readable(differing.select(f"{_KEY}.*")).collect()]

    def _errors(self) -> AbstractContextManager[None]:
        return spark_errors(f"{self.staged.record.table}, comparing staged parts with the changes of the source")

    def _feed(self, *, with_values: bool) -> DataFrame:
        """Return the feed's rows: their commit, whether they are new or old, hashes, and keys."""
        is_new, scan = is_new_row(), self.scan()
        changes = projected(read_scan(self.spark(), scan), self.projection)
        values = [landed_value(column, changes) for column in self.columns]
        if scan.replacing:
            changes = _without_unchanged(changes, scan.replacing, self._keys(), values)
        return changes.select(
            F.col(COMMIT_VERSION).alias(_VERSION),
            is_new.alias(_IS_NEW),
            (~is_new).alias(_IS_OLD),
            *self._hashes(values if with_values else self._keys()),
        )

    def _parts(self, *, with_values: bool) -> DataFrame:
        """Return the rows of the parts: their place, whether they are new, old, or both, hashes, and keys."""
        rows = self.staged.spark_rows(self.spark(), self.staged.rows_before.values())
        values = [F.col(quoted(column.name)) for column in self.columns]
        return rows.select(
            (F.col(PART_NUMBER) + F.col(ROW_INDEX)).alias(_PLACE),
            (F.col(ROW_MARKER) != int(Marker.DELETE)).alias(_IS_NEW),
            (F.col(ROW_MARKER) != int(Marker.INSERT)).alias(_IS_OLD),
            *self._hashes(values if with_values else self._keys()),
        )

    def _keys(self) -> list[Column]:
        return [F.col(quoted(key)) for key in self.staged.record.keys]

    def _hashes(self, new: Sequence[Column]) -> list[Column]:
        """Return the hash of a new row, by these columns, and of an old one; and the key."""
        keys = self._keys()
        return [F.xxhash64(*new).alias(_NEW), F.xxhash64(F.lit(0), *keys).alias(_OLD), F.struct(*keys).alias(_KEY)]


def _without_unchanged(
    changes: DataFrame, versions: Collection[int], keys: Sequence[Column], values: Sequence[Column]
) -> DataFrame:
    """Return the rows without those that a commit removes and adds with the same values: these don't land."""
    same = Window.partitionBy(COMMIT_VERSION, *keys, F.xxhash64(*values), F.hash(*values))
    sides = F.min(is_new_row()).over(same) != F.max(is_new_row()).over(same)
    is_replaced = F.col(COMMIT_VERSION).isin(*versions)
    return changes.withColumn(_UNCHANGED, is_replaced & sides).where(~F.col(_UNCHANGED)).drop(_UNCHANGED)


def _sums(rows: DataFrame) -> dict[int, CommitSums]:
    halves = (f"{{}} & {_LOW_HALF}L", "shiftright({}, 32)")
    summed = (f"IF({_IS_NEW}, {half}, 0L) + IF({_IS_OLD}, {half}, 0L)".format(_NEW, _OLD) for half in halves)
    sums = (f"count_if({_IS_NEW})", f"count_if({_IS_OLD})", *(f"sum({one})" for one in summed))
    found = sorted(rows.groupBy(_VERSION).agg(*map(F.expr, sums)).collect())
    return {version: CommitSums(new, old, (low, high)) for version, new, old, low, high in found}


def _single_rows(rows: DataFrame) -> DataFrame:
    """Return each new and each old row as a row of its own: its hash, whether it is new, and its key."""
    new = rows.where(_IS_NEW).select(F.lit(_IS_NEW), F.col(_NEW), _KEY)
    return new.union(rows.where(_IS_OLD).select(F.lit(_IS_OLD), F.col(_OLD), _KEY))
