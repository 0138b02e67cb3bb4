"""Pairs the old and the new row of each key and commit into one change, in the part that the plan assigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_VERSION, HelperNames, described, is_new_row, values_where
from mirror_assets.encode.counted import row_counts
from mirror_assets.encode.part_assignment import EncodeGroup, part_of_row, shuffle_key
from mirror_assets.encode.row_hash import value_stamp
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.redaction import shown_key
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.schema import LandedColumn
from mirror_assets.spark_messages import readable
from mirror_assets.spark_names import quoted

DUPLICATES, MISPLACED = "duplicates", "misplaced"

_SAMPLES = 5
_LOW_HALF = (1 << 32) - 1
_MARKERS = {"insert": Marker.INSERT, "update_postimage": Marker.UPDATE, "delete": Marker.DELETE}
_UNKNOWN = -1


@dataclass(frozen=True)
class CommitRows:
    """A commit's row counts by change type, and whether its updates change keys."""

    read: ReadRows
    changes_keys: bool = False

    @property
    def needs_pairing(self) -> bool:
        """Whether the commit may delete a row and insert another one with the same key."""
        return self.changes_keys or (self.read.insert > 0 and self.read.delete > 0)


def count_commit_rows(changes: DataFrame, versions: Sequence[int], keys: Sequence[str]) -> dict[int, CommitRows]:
    """Count the change feed rows of each of these versions, in one query; omit versions without rows."""
    # The sums of both halves of the keys' hashes are 0 if updates keep keys.
    sign = F.when(F.col(CHANGE_TYPE) == "update_postimage", 1).when(F.col(CHANGE_TYPE) == "update_preimage", -1)
    hash_ = F.xxhash64(*(F.col(quoted(key)) for key in keys))
    halves = {"low": hash_.bitwiseAND(_LOW_HALF), "high": F.shiftright(hash_, 32)}
    sums = [F.coalesce(F.sum(half * sign), F.lit(0)).alias(name) for name, half in halves.items()]
    found = changes.where(F.col(COMMIT_VERSION).isin(*versions)).groupBy(COMMIT_VERSION)
    return {
        row[COMMIT_VERSION]: CommitRows(ReadRows.of(row.asDict()), changes_keys=bool(row["low"] or row["high"]))
        for row in found.agg(*row_counts(), *sums).collect()
    }


def unpaired_rows(
    changes: DataFrame,
    kinds: frozenset[str],
    columns: Sequence[LandedColumn],
    keys: Sequence[str],
    footer: Mapping[str, str],
) -> DataFrame:
    """Return a commit's landed rows in the order of the scan, without a shuffle: no two of them share a key.

    `kinds` are the change types of its rows; where only one of them lands, Spark doesn't compute the marker per row.
    """
    landing = changes.where(F.col(CHANGE_TYPE) != "update_preimage") if "update_preimage" in kinds else changes
    landing_kinds = kinds & _MARKERS.keys()
    # All rows but deletes land with values beside their keys.
    is_one_kind = len(landing_kinds) == 1
    has_values = F.lit("delete" not in kinds) if is_one_kind or "delete" not in kinds else is_new_row()
    if is_one_kind:
        marker = F.lit(int(_MARKERS[min(landing_kinds)]))
    else:
        by_type = (F.when(F.col(CHANGE_TYPE) == kind, int(marker)) for kind, marker in _MARKERS.items())
        # The default keeps the column non-nullable, the same in every file of a slice; the checks refuse its value.
        marker = F.coalesce(*by_type, F.lit(_UNKNOWN))
    values = values_where(has_values, changes, columns, keys)
    rows = landing.select(*values, marker.cast("int").alias(ROW_MARKER))
    return rows.select(*described(columns, footer), ROW_MARKER)


def paired_rows(
    changes: DataFrame,
    group: EncodeGroup,
    columns: Sequence[LandedColumn],
    keys: Sequence[str],
    replacing: frozenset[int] = frozenset(),
) -> DataFrame:
    """Shuffle change feed rows into one Spark partition per part, sorted by commit and key hash.

    Each row gets helper columns: the shuffle key of its part, whether the rows before and after it of the same key and
    commit are new, and whether it equals the row before. Of old rows, only the keys are shuffled, because a DELETE
    needs no more, and in the commits `replacing` a hash of their values: most rows of these may be unchanged.
    """
    ours, is_new = HelperNames.beside(columns), is_new_row()
    hash_ = F.hash(*(F.col(quoted(key)) for key in keys))
    # Spark's sort compares an 8-byte prefix of the first column, and the other columns only on a tie: so the commit
    # version is in the high half of the sort key, and the key's hash in the low half. The expression has no constant of
    # this slice: with one, Spark would compile the sort again for every slice.
    order = F.shiftleft(F.col(COMMIT_VERSION), 32).bitwiseOR(hash_.cast("long").bitwiseAND(_LOW_HALF))
    # With the shuffle key among its columns, the window needs no shuffle of its own.
    window = Window.partitionBy(ours.order, ours.shuffle_key, *map(quoted, keys)).orderBy(ours.is_new)
    stamps = (ours.stamp_a, ours.stamp_b) if replacing else ()
    hashed = value_stamp(changes, [column for column in columns if column.name not in keys]) if replacing else ()
    is_replaced = F.col(COMMIT_VERSION).isin(*replacing)
    rows = (
        changes.select(
            shuffle_key(part_of_row(group, hash_), group.parts).alias(ours.shuffle_key),
            order.alias(ours.order),
            is_new.alias(ours.is_new),
            *values_where(is_new, changes, columns, keys),
            *(F.when(is_replaced, value).alias(name) for name, value in zip(stamps, hashed, strict=True)),
        )
        .repartition(group.parts, ours.shuffle_key)
        .withColumn(ours.previous, F.lag(ours.is_new).over(window))
        .withColumn(ours.next, F.lead(ours.is_new).over(window))
    )
    same = [F.coalesce(F.col(stamp) == F.lag(stamp).over(window), F.lit(col=False)) for stamp in stamps]
    return rows.withColumn(ours.is_same, same[0] & same[1] if same else F.lit(col=False))


def landed_in_parts(
    pairs: DataFrame, columns: Sequence[LandedColumn], footer: Mapping[str, str], counted: Observation
) -> DataFrame:
    """Return the landed rows of `paired_rows`; `counted` counts rows that repeat a key, and misplaced rows.

    A misplaced row is in another Spark partition than its part. A partition becomes the file with its index in the
    name, and operators after the shuffle may reorder partitions: `coalesce` does, even when their number stays the
    same. So apply no other operator after this one.
    """
    ours = HelperNames.beside(columns)
    placed = pairs.withColumn(ours.index, F.spark_partition_id()).observe(
        counted,
        F.count_if(F.col(ours.previous) == F.col(ours.is_new)).alias(DUPLICATES),
        F.count_if(F.hash(ours.shuffle_key) != F.col(ours.index)).alias(MISPLACED),
    )
    lands = F.when(F.col(ours.is_new), ~F.col(ours.is_same)).otherwise(F.col(ours.next).isNull())
    update = F.when(F.col(ours.previous).isNull(), int(Marker.INSERT)).otherwise(int(Marker.UPDATE))
    marker = F.when(F.col(ours.is_new), update).otherwise(int(Marker.DELETE)).cast("int")
    return placed.where(lands).select(*described(columns, footer), marker.alias(ROW_MARKER))


def repeated_key_samples(changes: DataFrame, keys: Sequence[str]) -> tuple[str, ...]:
    """Return up to five keys that have two old or two new rows in one commit, as readable text."""
    names = {f"key{index}": key for index, key in enumerate(keys)}
    columns = [F.col(quoted(key)).alias(alias) for alias, key in names.items()]
    grouped = changes.select(F.col(COMMIT_VERSION).alias("version"), is_new_row().alias("is_new"), *columns)
    counted = grouped.groupBy("version", "is_new", *names).agg(F.count(F.lit(1)).alias("rows"))
    rows = readable(counted.where("rows > 1").limit(_SAMPLES)).collect()
    shown = [shown_key({key: row[alias] for alias, key in names.items()}) for row in rows]
    return tuple(f"{key} at version {row['version']}" for key, row in zip(shown, rows, strict=True))
