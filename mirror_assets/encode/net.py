"""Encodes the net changes of a slice: at most one per key, without the states in between (docs/encoding.md).

A key whose first row is an old one existed before the slice; a key whose last row is a new one exists after it. A key
that existed before and exists after lands as UPDATE with the last row, one that only existed before as DELETE, one that
only exists after as INSERT. All others don't land.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F

from mirror_assets.encode.columns import COMMIT_VERSION, HelperNames, described, is_new_row, values_where
from mirror_assets.encode.counted import Counted, ObservedRows
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.observed import observed
from mirror_assets.encode.pairing import repeated_key_samples
from mirror_assets.encode.spark_errors import duplicate_key, spark_errors
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.source.batching import parts_for
from mirror_assets.source.schema import LandedColumn
from mirror_assets.spark_names import quoted

_REPEATS = "repeats"


@dataclass(frozen=True)
class NetSlice:
    """Net changes to encode: the keys and columns of the change rows, and the number of parts.

    Where the changes are counted before they are written, there are fewer parts, of `part_rows` changes each.
    """

    table: str
    keys: tuple[str, ...]
    columns: tuple[LandedColumn, ...]
    parts: int
    part_rows: int = 0

    def parts_for(self, changes: int) -> int:
        """Return the number of parts for this many changes."""
        return min(self.parts, parts_for(changes, self.part_rows)) if self.part_rows else self.parts


def encode_net(
    changes: ObservedRows, slice_: NetSlice, folder: str, compression: str, footer: Mapping[str, str]
) -> Counted:
    """Write the net changes into `folder`, one file per part that has rows; return the counts of the rows read.

    Raises DUPLICATE_KEY, with sample keys, when a key has two old or two new rows in one commit, and the errors of
    `spark_error`.
    """
    repeats = Observation()
    with spark_errors(f"{slice_.table}, encoding into {folder}"):
        write_parts(net_rows(changes.rows, slice_, footer, repeats), folder, compression)
        if found := observed(repeats)[_REPEATS]:
            raise duplicate_key(slice_.table, found, repeated_key_samples(changes.rows, slice_.keys))
        return changes.counted()


def net_rows(
    changes: DataFrame, slice_: NetSlice, footer: Mapping[str, str], counted: Observation | None = None
) -> DataFrame:
    """Return the landed rows, one Spark partition per part; `counted` counts the rows that repeat a key."""
    ours = HelperNames.beside(slice_.columns)
    keys = [quoted(key) for key in slice_.keys]
    window = Window.partitionBy(*keys).orderBy(COMMIT_VERSION, ours.is_new)
    is_new, moment = is_new_row(), F.struct(COMMIT_VERSION, ours.is_new)
    values = values_where(is_new, changes, slice_.columns, slice_.keys)
    rows = (
        changes.select(COMMIT_VERSION, is_new.alias(ours.is_new), *values)
        .repartition(slice_.parts, *keys)
        .withColumn(ours.repeats, F.coalesce(F.lag(moment).over(window) == moment, F.lit(col=False)))
        .withColumn(ours.is_last, F.lead(ours.is_new).over(window).isNull())
        .withColumn(ours.was_there, ~F.first(ours.is_new).over(window))
    )
    new, there = F.col(ours.is_new), F.col(ours.was_there)
    lands = F.col(ours.is_last) & (new | there)
    if counted is not None:
        rows = rows.observe(counted, F.count_if(ours.repeats).alias(_REPEATS))
    update = F.when(there, int(Marker.UPDATE)).otherwise(int(Marker.INSERT))
    marker = F.when(new, update).otherwise(int(Marker.DELETE)).cast("int")
    return rows.where(lands).select(*described(slice_.columns, footer), marker.alias(ROW_MARKER))
