"""Encodes changes: reads the change feed in groups of commits and writes each group as ordered, marked parts."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import Observation, SparkSession

from mirror_assets.encode.feed_reader import ChangeFeed
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.observed import observed
from mirror_assets.encode.pairing import (
    DUPLICATES,
    MISPLACED,
    CommitRows,
    count_commit_rows,
    landed_in_parts,
    paired_rows,
    repeated_key_samples,
    row_counts,
    unpaired_rows,
)
from mirror_assets.encode.part_assignment import EncodeGroup, group_commits
from mirror_assets.encode.private.table_version import has_own_reader
from mirror_assets.encode.spark_errors import DuplicateKey, rows_misplaced, spark_errors
from mirror_assets.source.batching import PartAssignment
from mirror_assets.source.projection import ALL_ROWS, Projection
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.schema import LandedColumn

# A group with one part keeps one core busy; more concurrent Spark jobs would only wait for each other.
_CONCURRENT_GROUPS = 4


@dataclass(frozen=True)
class FeedSlice:
    """Changes to encode: commits `first` to `last` of the table at `uri`, with the parts that the plan assigns to each.

    Files of unpaired commits have at most `target_rows` rows; parts of paired commits have about as many.
    `vector_versions` are commits that change deletion vectors (see ChangeFeed). `projection` selects the landing rows.
    """

    table: str
    uri: str
    first: int
    last: int
    keys: tuple[str, ...]
    columns: tuple[LandedColumn, ...]
    assignments: tuple[PartAssignment, ...]
    target_rows: int
    vector_versions: tuple[int, ...] = ()
    projection: Projection = ALL_ROWS


@dataclass(frozen=True)
class EncodedChanges:
    """The counts of the rows read, and the groups written; the names of their folders sort by group."""

    read: ReadRows
    groups: tuple[EncodeGroup, ...]


class EncodedGroup:
    """The landed rows of one group of commits, unpaired if the known row counts rule out repeated keys."""

    def __init__(
        self,
        feed: ChangeFeed,
        slice_: FeedSlice,
        group: EncodeGroup,
        known_counts: CommitRows | None,
        footer: Mapping[str, str],
    ) -> None:
        """Define the read, which runs with `write`; without known counts, an Observation counts the rows meanwhile."""
        self.group = group
        self._slice = slice_
        self._changes = feed.rows(group.first, group.last)
        self._known_counts = None if known_counts is None or known_counts.needs_pairing else known_counts.read
        self._counted, self._paired = Observation(), Observation()
        if self._known_counts is not None:
            rows = unpaired_rows(self._changes, self._known_counts, slice_.columns, slice_.keys, footer)
            self.rows = rows.coalesce(group.parts)
        else:
            counted = self._changes.observe(self._counted, *row_counts())
            pairs = paired_rows(counted, group, slice_.columns, slice_.keys)
            self.rows = landed_in_parts(pairs, slice_.columns, footer, self._paired)

    def write(self, folder: str, compression: str) -> None:
        """Write the rows into the new folder. Raises DuplicateKey, rows_misplaced, and what Spark raises."""
        most_rows = 0 if self._known_counts is None else self._slice.target_rows
        write_parts(self.rows, folder, compression, most_rows)
        if self._known_counts is not None:
            return
        counts = observed(self._paired)
        if repeats := counts[DUPLICATES]:
            raise DuplicateKey(self._slice.table, repeats, repeated_key_samples(self._changes, self._slice.keys))
        if misplaced := counts[MISPLACED]:
            raise rows_misplaced(self._slice.table, misplaced, self.group.first, self.group.last)

    @property
    def read(self) -> ReadRows:
        """The counts of the rows read, available after `write`."""
        return ReadRows.of(observed(self._counted)) if self._known_counts is None else self._known_counts


def encode_changes(
    spark: SparkSession, slice_: FeedSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> EncodedChanges:
    """Write the slice's parts into `folder`, with a subfolder for each group of commits.

    Raises DuplicateKey, with sample keys, when a key has two old or two new rows in one commit; rows_misplaced when
    Spark writes a row outside of its part; and the errors of `spark_error`.
    """
    with spark_errors(f"{slice_.table}, encoding versions {slice_.first} to {slice_.last} into {folder}"):
        groups = encoded_groups(spark, slice_, footer)
        with ThreadPoolExecutor(_CONCURRENT_GROUPS) as pool:
            written = [
                pool.submit(group.write, f"{folder}/{number:05d}", compression) for number, group in enumerate(groups)
            ]
            try:
                for one in written:  # the error of the first group that fails, in order, is raised
                    one.result()
            finally:
                pool.shutdown(cancel_futures=True)
        return EncodedChanges(sum((group.read for group in groups), ReadRows()), tuple(group.group for group in groups))


def encoded_groups(spark: SparkSession, slice_: FeedSlice, footer: Mapping[str, str]) -> list[EncodedGroup]:
    """Return the slice's groups in commit order, ready to write.

    The row counts of unpaired commits are from the log, or else from one query over the feed: the log doesn't know how
    many rows meet a condition.
    """
    feed = ChangeFeed(spark, slice_.uri, slice_.last, slice_.vector_versions, slice_.projection)
    # Delta's public reader reads the whole range at once.
    groups = group_commits(slice_.assignments) if has_own_reader(spark) else (EncodeGroup(slice_.assignments),)
    unpaired = {group.first: group.assignments[0].known_counts for group in groups if group.unpaired}
    is_known = not slice_.projection.where
    known = {version: CommitRows(counts) for version, counts in unpaired.items() if counts and is_known}
    unknown = [version for version in unpaired if version not in known]
    if unknown:
        changes = feed.rows(unknown[0], unknown[-1])
        known |= dict.fromkeys(unknown, CommitRows(ReadRows())) | count_commit_rows(changes, unknown, slice_.keys)
    return [EncodedGroup(feed, slice_, group, known.get(group.first), footer) for group in groups]
