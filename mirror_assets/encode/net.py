"""Encodes the net changes of a slice: one per key at most, whatever happened to it in between (docs/encoding.md).

A key that has an old row first was there before the slice; one that has a new row last is there after it. Both: UPDATE
with the last row; only before: DELETE; only after: INSERT; neither: nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, Window, WindowSpec
from pyspark.sql import functions as F

from mirror_assets.encode.columns import COMMIT_VERSION, described, is_new_row, quoted, unused_prefix, values_where
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.pairing import repeated_key_samples
from mirror_assets.encode.spark_errors import DuplicateKey, RowIdsUnfit, spark_errors
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.schema import LandedColumn

# What one task sorts. Few rows of rewritten files land: they go into their parts by a second, small shuffle.
_BIN_BYTES = 64 << 20


@dataclass(frozen=True)
class NetSlice:
    """What to encode: rows of a feed's shape, the keys by which they belong together, and the number of parts.

    `stamp` are columns that are equal in the first and the last row of a key only if nothing has changed. `bare` is a
    column that says of a row that it came without its values, because it can't have changed. `rewritten_bytes` are
    those of files in which most rows may be unchanged.
    """

    table: str
    keys: tuple[str, ...]
    columns: tuple[LandedColumn, ...]
    parts: int
    stamp: tuple[str, ...] = ()
    bare: str | None = None
    rewritten_bytes: int = 0

    @property
    def bins(self) -> int:
        """Into how many bins the rows are sorted, a multiple of the parts."""
        return self.parts * max(1, -(-self.rewritten_bytes // (self.parts * _BIN_BYTES)))

    @property
    def aside(self) -> tuple[str, ...]:
        """The columns that don't land."""
        return (*self.stamp, self.bare) if self.bare else self.stamp


@dataclass(frozen=True)
class _Names:
    """Names of the encoder's own columns, none of them a landed column."""

    bin: str
    is_new: str
    is_last: str
    was_there: str
    repeats: str
    first_stamp: str

    @classmethod
    def beside(cls, columns: Sequence[LandedColumn]) -> _Names:
        """Names that differ from all of these."""
        mark = unused_prefix(columns)
        return cls(*(f"{mark}{name}" for name in ("bin", "is_new", "is_last", "was_there", "repeats", "first_stamp")))


def encode_net(
    changes: DataFrame, slice_: NetSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> ReadRows:
    """Write the net changes into `folder`, one file per part that has rows; the rows that they are made of.

    Raises DuplicateKey when two rows of one key are live at once, with sample keys; RowIdsUnfit, and what
    `spark_error` makes of Spark's exceptions.
    """
    counted = Observation()
    with spark_errors(f"{slice_.table}, encoding into {folder}"):
        write_parts(net_rows(changes, slice_, footer, counted), folder, compression)
        counts: Mapping[str, int] = counted.get
        if repeats := counts["repeats"]:
            raise DuplicateKey(slice_.table, repeats, repeated_key_samples(changes, slice_.keys))
        if bare := counts["bare"]:
            raise RowIdsUnfit(slice_.table, bare)
        return ReadRows.of(counts)


def net_rows(
    changes: DataFrame, slice_: NetSlice, footer: Mapping[str, str], counted: Observation | None = None
) -> DataFrame:
    """The landed rows, one Spark partition per part; `counted` counts them on the way, and rows that repeat a key."""
    ours = _Names.beside(slice_.columns)
    last = _judged(changes, slice_, ours)
    if counted is not None:
        last = last.observe(counted, *_counts(ours, slice_))
    landing = last.where(_lands(ours, slice_))
    if slice_.bins > slice_.parts:
        landing = landing.repartitionById(slice_.parts, F.pmod(F.col(ours.bin), F.lit(slice_.parts)))
    return landing.select(*described(slice_.columns, footer), _marker(ours).alias(ROW_MARKER))


def _judged(changes: DataFrame, slice_: NetSlice, ours: _Names) -> DataFrame:
    """Every row, with what its key's others say of it."""
    keys = [quoted(key) for key in slice_.keys]
    window = Window.partitionBy(ours.bin, *keys).orderBy(COMMIT_VERSION, ours.is_new)
    bin_ = F.pmod(F.hash(*map(F.col, keys)), F.lit(slice_.bins))
    is_new, moment = is_new_row(), F.struct(COMMIT_VERSION, ours.is_new)
    values = values_where(is_new, changes, slice_.columns, slice_.keys)
    rows = (
        changes.select(bin_.alias(ours.bin), COMMIT_VERSION, is_new.alias(ours.is_new), *slice_.aside, *values)
        .repartitionById(slice_.bins, F.col(ours.bin))
        .withColumn(ours.repeats, F.coalesce(F.lag(moment).over(window) == moment, F.lit(col=False)))
        .withColumn(ours.is_last, F.lead(ours.is_new).over(window).isNull())
        .withColumn(ours.was_there, ~F.first(ours.is_new).over(window))
    )
    return rows.withColumn(ours.first_stamp, _first_stamp(slice_, window))


def _first_stamp(slice_: NetSlice, window: WindowSpec) -> Column:
    return F.first(F.struct(*slice_.stamp)).over(window) if slice_.stamp else F.lit(None)


def _lands(ours: _Names, slice_: NetSlice) -> Column:
    """Whether a row is its key's net change."""
    there = F.col(ours.was_there)
    unchanged = there & F.col(ours.is_new) & (F.col(ours.first_stamp) == F.struct(*slice_.stamp))
    changed = ~unchanged if slice_.stamp else F.lit(col=True)
    return F.col(ours.is_last) & (F.col(ours.is_new) | there) & changed


def _counts(ours: _Names, slice_: NetSlice) -> list[Column]:
    lands, new, there = _lands(ours, slice_), F.col(ours.is_new), F.col(ours.was_there)
    both = F.count_if(lands & new & there)
    bare = F.count_if(lands & new & F.col(slice_.bare)) if slice_.bare else F.lit(0)
    return [
        F.count_if(F.col(ours.repeats)).alias("repeats"),
        bare.alias("bare"),
        F.count_if(lands & new & ~there).alias("insert"),
        both.alias("update_preimage"),
        both.alias("update_postimage"),
        F.count_if(lands & ~new).alias("delete"),
    ]


def _marker(ours: _Names) -> Column:
    update = F.when(F.col(ours.was_there), int(Marker.UPDATE)).otherwise(int(Marker.INSERT))
    return F.when(F.col(ours.is_new), update).otherwise(int(Marker.DELETE)).cast("int")
