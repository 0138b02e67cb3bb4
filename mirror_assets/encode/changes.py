"""Encodes changes: reads the change rows in groups of commits and writes each group as ordered, marked parts."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession

from mirror_assets.encode.columns import projected
from mirror_assets.encode.counted import Counted, ObservedRows, number_of, observed_changes
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.observed import observed
from mirror_assets.encode.pairing import (
    DUPLICATES,
    MISPLACED,
    count_commit_rows,
    landed_in_parts,
    paired_rows,
    repeated_key_samples,
    unpaired_rows,
)
from mirror_assets.encode.part_assignment import EncodeGroup, group_commits
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import ROWS_MISPLACED, duplicate_key, spark_errors
from mirror_assets.source.batching import PartAssignment
from mirror_assets.source.projection import ALL_ROWS, Projection
from mirror_assets.source.scan import RowKind, Scan
from mirror_assets.source.schema import LandedColumn

# A group with one part keeps one core busy; more concurrent Spark jobs would only wait for each other.
_CONCURRENT_GROUPS = 4
_PLAIN = (frozenset({RowKind.INSERT}), frozenset({RowKind.DELETE}))


@dataclass(frozen=True)
class ChangesSlice:
    """Changes to encode: the change rows of a scan, and the parts that the plan assigns to each commit.

    Files of unpaired commits have at most `target_rows` rows; parts of paired commits have about as many. `projection`
    selects the landing rows.
    """

    table: str
    scan: Scan
    keys: tuple[str, ...]
    columns: tuple[LandedColumn, ...]
    assignments: tuple[PartAssignment, ...]
    target_rows: int
    projection: Projection = ALL_ROWS


@dataclass(frozen=True)
class GroupRead:
    """A group of commits that was written, and the rows that were read for it.

    `counted` None: the group has one commit that only adds or only removes rows, and its parts have all of them.
    `scanned` is then the number of rows before the condition, if there is one.
    """

    group: EncodeGroup
    counted: Counted | None
    scanned: int | None = None


class EncodedGroup:
    """The landed rows of one group of commits, unpaired if no two of its rows can share a key."""

    def __init__(
        self, spark: SparkSession, slice_: ChangesSlice, group: EncodeGroup, footer: Mapping[str, str]
    ) -> None:
        """Define the read, which runs with `write`. An unpaired commit of both kinds of rows is counted now."""
        self.group, self._slice = group, slice_
        self._scan = slice_.scan.of_commits(group.first, group.last)
        self._read = read_scan(spark, self._scan)
        self._counted: Counted | None = None
        self._observed: ObservedRows | None = None
        self._pairs = Observation()
        kinds = self._kinds() if group.unpaired else None
        if kinds is not None:
            rows = unpaired_rows(self._landing, kinds, slice_.columns, slice_.keys, footer)
            self.rows = rows.coalesce(group.parts)
        else:
            self._observed = observed_changes(self._read, slice_.projection)
            pairs = paired_rows(self._observed.rows, group, slice_.columns, slice_.keys, self._scan.replacing)
            self.rows = landed_in_parts(pairs, slice_.columns, footer, self._pairs)

    def write(self, folder: str, compression: str) -> GroupRead:
        """Write the rows into the new folder. Raises DUPLICATE_KEY, ROWS_MISPLACED, and what Spark raises."""
        write_parts(self.rows, folder, compression, 0 if self._observed else self._slice.target_rows)
        if self._observed is None:
            is_counted_apart = self._counted is None and self._slice.projection.where
            return GroupRead(self.group, self._counted, number_of(self._read) if is_counted_apart else None)
        counts = observed(self._pairs)
        if repeats := counts[DUPLICATES]:
            raise duplicate_key(self._slice.table, repeats, repeated_key_samples(self._landing, self._slice.keys))
        if misplaced := counts[MISPLACED]:
            raise ROWS_MISPLACED(table=self._slice.table, rows=misplaced, first=self.group.first, last=self.group.last)
        return GroupRead(self.group, self._observed.counted())

    def _kinds(self) -> frozenset[str] | None:
        """Return the change types of the commit's rows, if no two of them can share a key."""
        if self._scan.kinds in _PLAIN:
            return frozenset(kind.value for kind in self._scan.kinds)
        version = self.group.first
        scanned = count_commit_rows(self._read, [version], self._slice.keys).get(version)
        landing = scanned
        if self._slice.projection.where:
            landing = count_commit_rows(self._landing, [version], self._slice.keys).get(version)
        if landing is None or scanned is None or landing.needs_pairing:
            return None
        self._counted = Counted.of_commit(version, scanned.read, landing.read)
        return landing.read.kinds

    @property
    def _landing(self) -> DataFrame:
        return projected(self._read, self._slice.projection)


def encode_changes(
    spark: SparkSession, slice_: ChangesSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> tuple[GroupRead, ...]:
    """Write the slice's parts into `folder`, with a subfolder for each group of commits; their names sort by group.

    Raises DUPLICATE_KEY, with sample keys, when a key has two old or two new rows in one commit; ROWS_MISPLACED when
    Spark writes a row outside of its part; and the errors of `spark_error`.
    """
    with spark_errors(f"{slice_.table}, encoding changes of {slice_.scan.uri} into {folder}"):
        groups = encoded_groups(spark, slice_, footer)
        described = inheritable_thread_target(spark)  # jobs of the threads have the description of this one's
        with ThreadPoolExecutor(_CONCURRENT_GROUPS) as pool:
            written = [
                pool.submit(described(group.write), f"{folder}/{number:05d}", compression)
                for number, group in enumerate(groups)
            ]
            try:
                # The error of the first group that fails, in order, is raised.
                return tuple(one.result() for one in written)
            finally:
                pool.shutdown(cancel_futures=True)


def encoded_groups(spark: SparkSession, slice_: ChangesSlice, footer: Mapping[str, str]) -> list[EncodedGroup]:
    """Return the slice's groups in commit order, ready to write."""
    return [EncodedGroup(spark, slice_, group, footer) for group in group_commits(slice_.assignments)]
