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

from mirror_assets.delta.columns import LandedColumn, landed_value, optional, quoted
from mirror_assets.delta.reader import CHANGE_TYPE, COMMIT_VERSION, read_changes
from mirror_assets.delta.spark_errors import DuplicateKey, spark_errors
from mirror_assets.delta.write import write_parts
from mirror_assets.markers import ROW_MARKER, Marker

_SAMPLES = 5


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
        taken = {column.name.lower() for column in columns}
        mark = "__"
        while any(name.startswith(mark) for name in taken):
            mark += "_"
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
            raise DuplicateKey(slice_.table, paired.get["duplicates"], _duplicate_samples(changes, slice_))
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
    return kept.select(*_described(slice_.columns, footer), _marker(ours).alias(ROW_MARKER))


def _slim(changes: DataFrame, slice_: FeedSlice, ours: _Names) -> DataFrame:
    """What goes through the shuffle: old rows carry only their keys, for a DELETE needs no more."""
    is_new = F.col(CHANGE_TYPE).isin("insert", "update_postimage")
    keys = set(slice_.keys)
    values = [
        landed_value(column, changes).alias(column.name)
        if column.name in keys
        else F.when(is_new, landed_value(column, changes)).alias(column.name)
        for column in slice_.columns
    ]
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


def _described(columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> list[Column]:
    """The columns in order; the first carries the receipt into every file's footer."""
    first, *rest = columns
    described = optional(F.col(quoted(first.name)), first).alias(first.name, metadata=dict(footer))
    return [described, *(optional(F.col(quoted(c.name)), c).alias(c.name) for c in rest)]


def _change_counts() -> list[Column]:
    kinds = ("insert", "update_preimage", "update_postimage", "delete")
    return [F.count_if(F.col(CHANGE_TYPE) == kind).alias(kind) for kind in kinds]


def _duplicate_samples(changes: DataFrame, slice_: FeedSlice) -> tuple[str, ...]:
    """Sample keys with two old or two new rows in one commit, as readable text."""
    is_new = F.col(CHANGE_TYPE).isin("insert", "update_postimage")
    keys = [F.col(quoted(key)).alias(f"key{index}") for index, key in enumerate(slice_.keys)]
    rows = (
        changes.select(F.col(COMMIT_VERSION).alias("version"), is_new.alias("is_new"), *keys)
        .groupBy("version", "is_new", *(f"key{index}" for index in range(len(keys))))
        .agg(F.count(F.lit(1)).alias("rows"))
        .where("rows > 1")
        .limit(_SAMPLES)
        .collect()
    )
    shown = [[f"{key}={row[f'key{index}']!r}" for index, key in enumerate(slice_.keys)] for row in rows]
    return tuple(f"{', '.join(key)} at version {row['version']}" for key, row in zip(shown, rows, strict=True))
