"""Encodes a slice of the change feed into ordered, marked parts with one shuffle (docs/encoding.md).

Per commit and key the feed has an old row, a new row, or both: old only is a DELETE, new only an INSERT, both an UPDATE
with the new row. So at most one change per key and commit is left, and the order of rows within a commit is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.delta.columns import LandedColumn, described, quoted, unused_prefix, values_where
from mirror_assets.delta.feed_columns import CHANGE_TYPE, COMMIT_VERSION, is_new_row
from mirror_assets.delta.reader import read_changes
from mirror_assets.delta.repeats import repeated_key_samples
from mirror_assets.delta.spark_errors import DuplicateKey, spark_errors
from mirror_assets.delta.write import write_parts
from mirror_assets.markers import ROW_MARKER, Marker


@dataclass(frozen=True)
class _Names:
    """Names of the encoder's own columns, none of them a column of the source."""

    part: str
    is_new: str
    previous: str
    next: str

    @classmethod
    def beside(cls, columns: Sequence[LandedColumn]) -> _Names:
        """Names that differ from all of these, which Spark compares without case."""
        mark = unused_prefix(columns)
        return cls(f"{mark}part", f"{mark}is_new", f"{mark}previous", f"{mark}next")


class Spread(Protocol):
    """Where the plan puts a commit's rows: parts `first_part` to `first_part + parts - 1`."""

    @property
    def version(self) -> int:
        """The commit."""
        ...

    @property
    def first_part(self) -> int:
        """Its first part, from 0."""
        ...

    @property
    def parts(self) -> int:
        """How many parts it is spread over."""
        ...


@dataclass(frozen=True)
class FeedSlice:
    """What to encode: commits `first` to `last` of the table at `uri`, and how its rows are cut into parts."""

    table: str
    uri: str
    first: int
    last: int
    keys: tuple[str, ...]
    columns: tuple[LandedColumn, ...]
    spreads: tuple[Spread, ...]
    parts: int
    vector_versions: tuple[int, ...] = ()


def encode_changes(
    spark: SparkSession, slice_: FeedSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> dict[str, int]:
    """Write the slice's parts into `folder`, one file per part that has rows; rows read by `_change_type`.

    Raises DuplicateKey when the source has two rows of one key in one commit, with sample keys; DataFileMissing,
    SparkOutOfSpace and SparkFailed.
    """
    read, paired = Observation(), Observation()
    with spark_errors(folder):
        changes = read_changes(spark, slice_.uri, slice_.first, slice_.last, slice_.vector_versions)
        frame = landing_rows(changes.observe(read, *_change_counts()), slice_, footer, paired)
        write_parts(frame, folder, compression)
        if paired.get["duplicates"]:
            raise DuplicateKey(slice_.table, paired.get["duplicates"], repeated_key_samples(changes, slice_.keys))
        return dict(read.get)


def landing_rows(
    changes: DataFrame, slice_: FeedSlice, footer: Mapping[str, str], paired: Observation | None = None
) -> DataFrame:
    """The landed rows of a feed, in order, one Spark partition per part; `paired` counts duplicate keys on the way."""
    keys, ours = [quoted(key) for key in slice_.keys], _Names.beside(slice_.columns)
    window = Window.partitionBy(ours.part, COMMIT_VERSION, *keys).orderBy(ours.is_new)
    pairs = (
        _slim(changes, slice_, ours)
        .repartitionById(slice_.parts, F.col(ours.part))
        .withColumn(ours.previous, F.lag(ours.is_new).over(window))
        .withColumn(ours.next, F.lead(ours.is_new).over(window))
    )
    if paired is not None:
        pairs = pairs.observe(paired, F.count_if(F.col(ours.previous) == F.col(ours.is_new)).alias("duplicates"))
    kept = pairs.where(F.col(ours.is_new) | F.col(ours.next).isNull())
    return kept.select(*described(slice_.columns, footer), _marker(ours).alias(ROW_MARKER))


def _slim(changes: DataFrame, slice_: FeedSlice, ours: _Names) -> DataFrame:
    """What goes through the shuffle: old rows carry only their keys, for a DELETE needs no more."""
    is_new = is_new_row()
    values = values_where(is_new, changes, slice_.columns, slice_.keys)
    return changes.select(_part_of(slice_).alias(ours.part), F.col(COMMIT_VERSION), is_new.alias(ours.is_new), *values)


def _part_of(slice_: FeedSlice) -> Column:
    """The part of a row, from the plan alone: no counting pass, no range sampling."""
    first_part = _by_version(slice_, [spread.first_part for spread in slice_.spreads])
    parts = _by_version(slice_, [spread.parts for spread in slice_.spreads])
    spread = F.pmod(F.hash(*(F.col(quoted(key)) for key in slice_.keys)), parts)
    return first_part if all(spread.parts == 1 for spread in slice_.spreads) else first_part + spread


def _by_version(slice_: FeedSlice, values: Sequence[int]) -> Column:
    """The value that belongs to a row's commit, looked up in a constant array."""
    table = [0] * (slice_.last - slice_.first + 1)
    for spread, value in zip(slice_.spreads, values, strict=True):
        table[spread.version - slice_.first] = value
    index = (F.col(COMMIT_VERSION) - slice_.first + 1).cast("int")
    return F.element_at(F.lit(table), index) if len(set(values)) > 1 else F.lit(values[0])


def _marker(ours: _Names) -> Column:
    update = F.when(F.col(ours.previous).isNull(), int(Marker.INSERT)).otherwise(int(Marker.UPDATE))
    return F.when(F.col(ours.is_new), update).otherwise(int(Marker.DELETE)).cast("int")


def _change_counts() -> list[Column]:
    kinds = ("insert", "update_preimage", "update_postimage", "delete")
    return [F.count_if(F.col(CHANGE_TYPE) == kind).alias(kind) for kind in kinds]
