"""Encodes a slice of the change feed into ordered, marked parts; a row is shuffled once at most (docs/encoding.md).

Per commit and key the feed has an old row, a new row, or both: old only is a DELETE, new only an INSERT, both an UPDATE
with the new row. So at most one change per key and commit is left, and the order of rows within a commit is free. A
large commit that does not both remove and add rows, nor change keys, needs no pairing, and so no shuffle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass
class EncodedRun:
    """The landed rows of a run; what was read, and repeated keys, are counted while they are written."""

    spark: SparkSession
    slice_: FeedSlice
    run: Run
    _read: Observation = field(default_factory=Observation)
    _paired: Observation = field(default_factory=Observation)

    def __post_init__(self) -> None:
        slice_, run = self.slice_, self.run
        vectors = [version for version in slice_.vector_versions if run.first <= version <= run.last]
        self._changes = read_changes(self.spark, slice_.uri, run.first, run.last, vectors, slice_.last)
        sums = key_sums(slice_.keys) if run.unpaired else []
        changes = self._changes.observe(self._read, *_change_counts(), *sums)
        self.rows = (
            unpaired_rows(changes, run, slice_.columns, slice_.keys)
            if run.unpaired
            else paired_rows(changes, run, slice_.columns, slice_.keys, self._paired)
        )

    @property
    def read(self) -> dict[str, int]:
        """Rows read by `_change_type`, once they are written."""
        return {kind: self._read.get[kind] for kind in _KINDS}

    @property
    def needs_pairing(self) -> bool:
        """Whether it landed rows unpaired that have to be paired."""
        return self.run.unpaired and needs_pairing(self._read.get)

    def landed(self) -> RunRows:
        """What it landed. Raises DuplicateKey."""
        if self.run.unpaired:
            return RunRows(sum(self.read.values()) - self.read["update_preimage"], self.run.first)
        if repeats := self._paired.get[DUPLICATES]:
            raise DuplicateKey(self.slice_.table, repeats, repeated_key_samples(self._changes, self.slice_.keys))
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
        if any(run.needs_pairing for run in runs):  # keys were changed, or the log did not tell everything
            runs = [EncodedRun(spark, slice_, Run(slice_.spreads))]
            write_parts(landing_rows(runs, slice_.columns, footer), folder, compression, again=True)
        landed = tuple(run.landed() for run in runs)
        read = {kind: sum(run.read[kind] for run in runs) for kind in _KINDS}
        return EncodedChanges(read, landed)


def landing_rows(runs: Sequence[EncodedRun], columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> DataFrame:
    """The landed rows of the runs, in order: Spark keeps the order of what it puts together."""
    rows = reduce(DataFrame.union, (run.rows for run in runs))
    return rows.select(*described(columns, footer), ROW_MARKER)


def _change_counts() -> list[Column]:
    return [F.count_if(F.col(CHANGE_TYPE) == kind).alias(kind) for kind in _KINDS]
