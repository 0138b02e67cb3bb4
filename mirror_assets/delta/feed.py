"""Encodes a slice of the change feed into ordered, marked parts; a row is shuffled once at most (docs/encoding.md).

Per commit and key the feed has an old row, a new row, or both: old only is a DELETE, new only an INSERT, both an UPDATE
with the new row. So at most one change per key and commit is left, and the order of rows within a commit is free. A
large commit that only adds rows needs no pairing, and so no shuffle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from mirror_assets.delta.columns import LandedColumn, described
from mirror_assets.delta.cut import CommitSpread
from mirror_assets.delta.errors import SourceUnreadable
from mirror_assets.delta.feed_columns import CHANGE_TYPE
from mirror_assets.delta.pairing import DUPLICATES, Run, added_rows, paired_rows, runs_of
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


@dataclass
class EncodedRun:
    """The landed rows of a run; what was read, and repeated keys, are counted while they are written."""

    spark: SparkSession
    slice_: FeedSlice
    run: Run
    read: Observation = field(default_factory=Observation)
    _counted: Observation = field(default_factory=Observation)

    def __post_init__(self) -> None:
        slice_, run = self.slice_, self.run
        vectors = [version for version in slice_.vector_versions if run.first <= version <= run.last]
        self._changes = read_changes(self.spark, slice_.uri, run.first, run.last, vectors, slice_.last)
        changes = self._changes.observe(self.read, *_change_counts())
        self.rows = (
            added_rows(changes, run, slice_.columns)
            if run.only_adds
            else paired_rows(changes, run, slice_.columns, slice_.keys, self._counted)
        )

    def check(self) -> None:
        """Raise what speaks against the rows, once they are written."""
        if self.run.only_adds:
            if sum(self.read.get.values()) != self.read.get["insert"]:
                raise SourceUnreadable(self.slice_.uri, f"version {self.run.first} was to add rows, and changes some")
        elif repeats := self._counted.get[DUPLICATES]:
            raise DuplicateKey(self.slice_.table, repeats, repeated_key_samples(self._changes, self.slice_.keys))


def encode_changes(
    spark: SparkSession, slice_: FeedSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> dict[str, int]:
    """Write the slice's parts into `folder`, one file per part that has rows; rows read by `_change_type`.

    Raises DuplicateKey when the source has two rows of one key in one commit, with sample keys; SourceUnreadable when
    a commit that only adds rows turns out to change some; DataFileMissing, SparkOutOfSpace and SparkFailed.
    """
    with spark_errors(folder):
        runs = [EncodedRun(spark, slice_, run) for run in slice_.runs(spark)]
        write_parts(landing_rows(runs, slice_.columns, footer), folder, compression)
        read: Counter[str] = Counter(dict.fromkeys(_KINDS, 0))
        for run in runs:
            run.check()
            read.update(run.read.get)
        return dict(read)


def landing_rows(runs: Sequence[EncodedRun], columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> DataFrame:
    """The landed rows of the runs, in order: Spark keeps the order of what it puts together."""
    rows = reduce(DataFrame.union, (run.rows for run in runs))
    return rows.select(*described(columns, footer), ROW_MARKER)


def _change_counts() -> list[Column]:
    return [F.count_if(F.col(CHANGE_TYPE) == kind).alias(kind) for kind in _KINDS]
