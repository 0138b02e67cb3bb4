"""Encodes changes: reads the change feed in groups of commits and writes each group as ordered, marked parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import Observation, SparkSession

from mirror_assets.encode.feed_reader import ChangeFeed
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.pairing import (
    DUPLICATES,
    MISPLACED,
    CommitRows,
    EncodeGroup,
    landed_in_parts,
    look_at_commits,
    paired_rows,
    repeated_key_samples,
    row_counts,
    runs_of,
    unpaired_rows,
)
from mirror_assets.encode.private.table_version import has_own_reader
from mirror_assets.encode.spark_errors import DuplicateKey, RowsMisplaced, spark_errors
from mirror_assets.source.batching import PartAssignment
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.schema import LandedColumn

# A run of one part keeps one core busy; more jobs at once than this only wait for each other.
_RUNS_AT_ONCE = 4


@dataclass(frozen=True)
class FeedSlice:
    """What to encode: commits `first` to `last` of the table at `uri`, and how its rows are cut into parts.

    A file of rows that are not paired has at most `target_rows`; parts of paired rows are about as large.
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

    def groups(self, spark: SparkSession) -> tuple[EncodeGroup, ...]:
        """The commits as they are encoded together. Delta's public reader gives them all at once: so as one run."""
        return runs_of(self.assignments) if has_own_reader(spark) else (EncodeGroup(self.assignments),)


@dataclass(frozen=True)
class EncodedChanges:
    """Rows read, and the runs that were written, each into the folder of its number (`run_folder`)."""

    read: ReadRows
    groups: tuple[EncodeGroup, ...]


class EncodedRun:
    """The landed rows of a run; without pairing where a look at its keys has told what it holds."""

    def __init__(
        self,
        feed: ChangeFeed,
        slice_: FeedSlice,
        group: EncodeGroup,
        told: CommitRows | None,
        footer: Mapping[str, str],
    ) -> None:
        """Read the run; nothing is written yet. What it reads is counted on the way, unless that is told."""
        self.group = group
        self._slice = slice_
        self._changes = feed.rows(group.first, group.last)
        self._told = None if told is None or told.needs_pairing else told.read
        self._counted, self._paired = Observation(), Observation()
        if self._told is not None:
            rows = unpaired_rows(self._changes, self._told, slice_.columns, slice_.keys, footer)
            self.rows = rows.coalesce(group.parts)
        else:
            counted = self._changes.observe(self._counted, *row_counts())
            pairs = paired_rows(counted, group, slice_.columns, slice_.keys)
            self.rows = landed_in_parts(pairs, slice_.columns, footer, self._paired)

    def write(self, folder: str, compression: str) -> None:
        """Write the rows into the new folder. Raises DuplicateKey, RowsMisplaced, and what Spark raises."""
        most_rows = 0 if self._told is None else self._slice.target_rows
        write_parts(self.rows, folder, compression, most_rows)
        if self._told is not None:
            return
        counts: Mapping[str, int] = self._paired.get
        if repeats := counts[DUPLICATES]:
            raise DuplicateKey(self._slice.table, repeats, repeated_key_samples(self._changes, self._slice.keys))
        if misplaced := counts[MISPLACED]:
            raise RowsMisplaced(self._slice.table, misplaced, self.group.first, self.group.last)

    @property
    def read(self) -> ReadRows:
        """Rows read, once they are written."""
        return ReadRows.of(self._counted.get) if self._told is None else self._told


def encode_changes(
    spark: SparkSession, slice_: FeedSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> EncodedChanges:
    """Write the slice's parts into `folder`, each run into a folder of its own below it.

    Raises DuplicateKey when the source has two rows of one key in one commit, with sample keys; RowsMisplaced, and what
    `spark_error` makes of Spark's exceptions.
    """
    with spark_errors(f"{slice_.table}, encoding versions {slice_.first} to {slice_.last} into {folder}"):
        groups = encoded_runs(spark, slice_, footer)
        _write(groups, folder, compression)
        return EncodedChanges(sum((group.read for group in groups), ReadRows()), tuple(group.group for group in groups))


def encoded_runs(spark: SparkSession, slice_: FeedSlice, footer: Mapping[str, str]) -> list[EncodedRun]:
    """The slice's runs, in order."""
    feed = ChangeFeed(spark, slice_.uri, slice_.last, slice_.vector_versions)
    groups = slice_.groups(spark)
    told = _told(feed, slice_, [group.assignments[0] for group in groups if group.unpaired])
    return [EncodedRun(feed, slice_, group, told.get(group.first), footer) for group in groups]


def run_folder(number: int) -> str:
    """Name of the folder that holds what the `number`-th run of a slice has written, from 0; they sort as the runs."""
    return f"{number:05d}"


def _write(groups: Sequence[EncodedRun], folder: str, compression: str) -> None:
    """Write all runs, several at a time. Raises what the first of them raises that fails."""
    with ThreadPoolExecutor(_RUNS_AT_ONCE) as pool:
        written = [
            pool.submit(group.write, f"{folder}/{run_folder(number)}", compression)
            for number, group in enumerate(groups)
        ]
        try:
            for one in written:
                one.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _told(feed: ChangeFeed, slice_: FeedSlice, assignments: Sequence[PartAssignment]) -> dict[int, CommitRows]:
    """What unpaired commits hold: by the log where it knows; the others are looked at together."""
    told = {
        assignment.version: CommitRows(assignment.known_counts) for assignment in assignments if assignment.known_counts
    }
    unknown = [assignment.version for assignment in assignments if not assignment.known_counts]
    if unknown:
        changes = feed.rows(unknown[0], unknown[-1])
        told |= dict.fromkeys(unknown, CommitRows(ReadRows())) | look_at_commits(changes, unknown, slice_.keys)
    return told
