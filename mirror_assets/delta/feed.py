"""Encodes a slice of the change feed into ordered, marked parts; a row is shuffled once at most (docs/encoding.md).

Per commit and key the feed has an old row, a new row, or both: old only is a DELETE, new only an INSERT, both an UPDATE
with the new row. So at most one change per key and commit is left, and the order of rows within a commit is free. A
large commit that does not both remove and add rows, nor change keys, needs no pairing, and so no shuffle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, Observation, SparkSession

from mirror_assets.delta.columns import LandedColumn, described
from mirror_assets.delta.commit_rows import CommitRows, look_at_commits, row_counts
from mirror_assets.delta.cut import CommitSpread
from mirror_assets.delta.pairing import DUPLICATES, LANDED, Run, paired_rows, runs_of, unpaired_rows
from mirror_assets.delta.read_rows import ReadRows
from mirror_assets.delta.reader import ChangeFeed
from mirror_assets.delta.repeats import repeated_key_samples
from mirror_assets.delta.spark_errors import DuplicateKey, spark_errors
from mirror_assets.delta.versions import has_own_reader
from mirror_assets.delta.write import write_parts
from mirror_assets.markers import ROW_MARKER


@dataclass(frozen=True)
class FeedSlice:
    """What to encode: commits `first` to `last` of the table at `uri`, and how its rows are cut into parts."""

    table: str
    uri: str
    first: int
    last: int
    keys: tuple[str, ...]
    columns: tuple[LandedColumn, ...]
    spreads: tuple[CommitSpread, ...]
    vector_versions: tuple[int, ...] = ()

    def runs(self, spark: SparkSession) -> tuple[Run, ...]:
        """The commits as they are encoded together. Delta's public reader gives them all at once: so as one run."""
        return runs_of(self.spreads) if has_own_reader(spark) else (Run(self.spreads),)


@dataclass(frozen=True)
class RunRows:
    """How many rows a run has landed, in order; `version` is its commit if it is the only one."""

    rows: int
    version: int | None


@dataclass(frozen=True)
class EncodedChanges:
    """Rows read, and rows landed by run."""

    read: ReadRows
    runs: tuple[RunRows, ...]


class EncodedRun:
    """The landed rows of a run; without pairing where a look at its keys has told what it holds."""

    def __init__(
        self, feed: ChangeFeed, slice_: FeedSlice, run: Run, told: CommitRows | None, footer: Mapping[str, str]
    ) -> None:
        """Read the run; nothing is written yet. What it reads is counted on the way, unless that is told."""
        self._slice, self._run = slice_, run
        self._changes = feed.rows(run.first, run.last)
        self._told = None if told is None or told.needs_pairing else told.read
        self._counted, self._paired = Observation(), Observation()
        if self._told is not None:
            landing = unpaired_rows(self._changes, self._told, slice_.columns, slice_.keys)
        else:
            counted = self._changes.observe(self._counted, *row_counts())
            landing = paired_rows(counted, run, slice_.columns, slice_.keys, self._paired)
        self.rows = landing.select(*described(slice_.columns, footer), ROW_MARKER).coalesce(run.parts)

    @property
    def read(self) -> ReadRows:
        """Rows read, once they are written."""
        return ReadRows.of(self._counted.get) if self._told is None else self._told

    def landed(self) -> RunRows:
        """What it landed, once it is written. Raises DuplicateKey."""
        if self._told is not None:
            return RunRows(self._told.changes, self._run.first)
        if repeats := self._paired.get[DUPLICATES]:
            raise DuplicateKey(self._slice.table, repeats, repeated_key_samples(self._changes, self._slice.keys))
        return RunRows(self._paired.get[LANDED], None)


def encode_changes(
    spark: SparkSession, slice_: FeedSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> EncodedChanges:
    """Write the slice's parts into `folder`, one file per part that has rows.

    Raises DuplicateKey when the source has two rows of one key in one commit, with sample keys, and what `spark_error`
    makes of Spark's exceptions.
    """
    with spark_errors(f"{slice_.table}, encoding versions {slice_.first} to {slice_.last} into {folder}"):
        runs = encoded_runs(spark, slice_, footer)
        write_parts(in_order(spark, runs), folder, compression)
        landed = tuple(run.landed() for run in runs)
        return EncodedChanges(sum((run.read for run in runs), ReadRows()), landed)


def encoded_runs(spark: SparkSession, slice_: FeedSlice, footer: Mapping[str, str]) -> list[EncodedRun]:
    """The slice's runs, in order."""
    feed = ChangeFeed(spark, slice_.uri, slice_.last, slice_.vector_versions)
    runs = slice_.runs(spark)
    told = _told(feed, slice_, [run.spreads[0] for run in runs if run.unpaired])
    return [EncodedRun(feed, slice_, run, told.get(run.first), footer) for run in runs]


def in_order(spark: SparkSession, runs: Sequence[EncodedRun]) -> DataFrame:
    """The landed rows of the runs: Spark keeps the order of what it puts together.

    Where it finds the runs to be cut in the same way, it would put their parts together one by one; it must not.
    """
    spark.conf.set("spark.sql.unionOutputPartitioning", "false")
    return reduce(DataFrame.union, (run.rows for run in runs))


def _told(feed: ChangeFeed, slice_: FeedSlice, spreads: Sequence[CommitSpread]) -> dict[int, CommitRows]:
    """What unpaired commits hold: by the log where it knows; the others are looked at together."""
    told = {spread.version: CommitRows(spread.told) for spread in spreads if spread.told}
    unknown = [spread.version for spread in spreads if not spread.told]
    if unknown:
        changes = feed.rows(unknown[0], unknown[-1])
        told |= dict.fromkeys(unknown, CommitRows(ReadRows())) | look_at_commits(changes, unknown, slice_.keys)
    return told
