"""Encodes a slice of the change feed into ordered, marked parts; a row is shuffled once at most (docs/encoding.md).

Per commit and key the feed has an old row, a new row, or both: old only is a DELETE, new only an INSERT, both an UPDATE
with the new row. So at most one change per key and commit is left, and the order of rows within a commit is free. A
large commit that does not both remove and add rows, nor change keys, needs no pairing, and so no shuffle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from mirror_assets.delta.columns import LandedColumn, described
from mirror_assets.delta.cut import CommitSpread
from mirror_assets.delta.feed_columns import CHANGE_TYPE
from mirror_assets.delta.pairing import (
    DUPLICATES,
    LANDED,
    Run,
    key_sums,
    needs_pairing,
    paired_rows,
    runs_of,
    unpaired_rows,
)
from mirror_assets.delta.reader import read_changes
from mirror_assets.delta.repeats import repeated_key_samples
from mirror_assets.delta.spark_errors import DuplicateKey, spark_errors
from mirror_assets.delta.versions import has_own_reader
from mirror_assets.delta.write import write_parts
from mirror_assets.markers import ROW_MARKER

_KINDS = ("insert", "update_preimage", "update_postimage", "delete")


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
    """Rows read by `_change_type`, and rows landed by run."""

    read: Mapping[str, int]
    runs: tuple[RunRows, ...]


class EncodedRun:
    """The landed rows of a run.

    Of an unpaired one, a look at the keys alone tells first what is read, and whether it must be paired after all. Of
    others, what is read is counted while they are written, and so are repeated keys.
    """

    def __init__(self, spark: SparkSession, slice_: FeedSlice, run: Run) -> None:
        """Read the run; nothing is written yet."""
        self._slice = slice_
        vectors = [version for version in slice_.vector_versions if run.first <= version <= run.last]
        self._changes = read_changes(spark, slice_.uri, run.first, run.last, vectors, slice_.last)
        told = _told(self._changes, slice_.keys) if run.unpaired else None
        self._told = None if told is None or needs_pairing(told) else told
        self._run, self._read, self._paired = run, Observation(), Observation()
        if self._told is not None:
            self.rows = unpaired_rows(self._changes, run, slice_.columns, slice_.keys)
        else:
            counted = self._changes.observe(self._read, *_change_counts())
            self.rows = paired_rows(counted, run, slice_.columns, slice_.keys, self._paired)

    @property
    def read(self) -> dict[str, int]:
        """Rows read by `_change_type`, once they are written."""
        told = self._read.get if self._told is None else self._told
        return {kind: told[kind] for kind in _KINDS}

    def landed(self) -> RunRows:
        """What it landed, once it is written. Raises DuplicateKey."""
        if self._told is not None:
            return RunRows(sum(self.read.values()) - self.read["update_preimage"], self._run.first)
        if repeats := self._paired.get[DUPLICATES]:
            raise DuplicateKey(self._slice.table, repeats, repeated_key_samples(self._changes, self._slice.keys))
        return RunRows(self._paired.get[LANDED], None)


def encode_changes(
    spark: SparkSession, slice_: FeedSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> EncodedChanges:
    """Write the slice's parts into `folder`, one file per part that has rows.

    Raises DuplicateKey when the source has two rows of one key in one commit, with sample keys; DataFileMissing,
    SparkOutOfSpace and SparkFailed.
    """
    with spark_errors(folder):
        runs = [EncodedRun(spark, slice_, run) for run in slice_.runs(spark)]
        write_parts(landing_rows(runs, slice_.columns, footer), folder, compression)
        landed = tuple(run.landed() for run in runs)
        return EncodedChanges({kind: sum(run.read[kind] for run in runs) for kind in _KINDS}, landed)


def landing_rows(runs: Sequence[EncodedRun], columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> DataFrame:
    """The landed rows of the runs, in order: Spark keeps the order of what it puts together."""
    rows = reduce(DataFrame.union, (run.rows for run in runs))
    return rows.select(*described(columns, footer), ROW_MARKER)


def _change_counts() -> list[Column]:
    return [F.count_if(F.col(CHANGE_TYPE) == kind).alias(kind) for kind in _KINDS]


def _told(changes: DataFrame, keys: Sequence[str]) -> dict[str, int]:
    """Rows by kind, and the sums over keys: one compiled pass over the key columns, far cheaper than on the way."""
    row = changes.agg(*_change_counts(), *key_sums(keys)).collect()[0]
    return {name: int(value) for name, value in row.asDict().items()}
