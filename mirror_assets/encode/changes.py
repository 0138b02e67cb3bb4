"""Encodes changes: reads the change rows in groups of commits and writes each group as ordered, marked parts.

The old and the new row of each key and commit are paired into one change, in the part that the plan assigns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.column_types import Family, LongValues, column_type
from mirror_assets.encode.columns import (
    CHANGE_TYPE,
    COMMIT_VERSION,
    HelperNames,
    described,
    is_new_row,
    projected,
    value_stamp,
    values_where,
)
from mirror_assets.encode.counted import Counted, ObservedRows, number_of, observed_changes, row_counts
from mirror_assets.encode.errors import ROWS_MISPLACED, duplicate_key
from mirror_assets.encode.inserts import long_values, longest_bytes, write_files, write_parts
from mirror_assets.encode.part_assignment import EncodeGroup, group_commits, part_of_row, shuffle_key
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.redaction import shown_key
from mirror_assets.source.batching import PartAssignment
from mirror_assets.source.commits import ReadRows
from mirror_assets.source.scan import RowKind, Scan
from mirror_assets.source.schema import ALL_ROWS, LandedColumn, Projection
from mirror_assets.spark_api import for_thread, observed
from mirror_assets.spark_messages import readable
from mirror_assets.spark_names import quoted

# A group with one part keeps one core busy; more concurrent Spark jobs would only wait for each other.
_CONCURRENT_GROUPS = 4
_PLAIN = (frozenset({RowKind.INSERT}), frozenset({RowKind.DELETE}))
_DUPLICATES, _MISPLACED = "duplicates", "misplaced"
_SAMPLES = 5
# What one task reads: a shuffle takes longer than to open these files one after another.
_SMALL_BYTES, _FEW_FILES = 4 << 20, 8
_LOW_HALF = (1 << 32) - 1
_MARKERS = {"insert": Marker.INSERT, "update_postimage": Marker.UPDATE, "delete": Marker.DELETE}
_UNKNOWN = -1


@dataclass(frozen=True)
class ChangesSlice:
    """Changes to encode: the change rows of a scan, and the parts that the plan assigns to each commit.

    Files of unpaired commits have at most `target_rows` rows; parts of paired commits have about as many. `projection`
    selects the landing rows.
    """

    table: str
    scan: Scan
    keys: tuple[str, ...]
    columns: tuple[LandedColumn, ...]
    assignments: tuple[PartAssignment, ...]
    target_rows: int
    projection: Projection = ALL_ROWS


@dataclass(frozen=True)
class GroupRead:
    """A group of commits that was written, and the rows that were read for it.

    `counted` None: the group has one commit that only adds or only removes rows, and its parts have all of them.
    """

    group: EncodeGroup
    counted: Counted | None
    long_values: LongValues = field(default_factory=dict)


class EncodedGroup:
    """The landed rows of one group of commits, unpaired if no two of its rows can share a key."""

    def __init__(
        self, spark: SparkSession, slice_: ChangesSlice, group: EncodeGroup, footer: Mapping[str, str]
    ) -> None:
        """Define the read, which runs with `write`. An unpaired commit of both kinds of rows is counted now."""
        self.group, self._slice = group, slice_
        self._scan = slice_.scan.of_commits(group.first, group.last)
        self._read = read_scan(spark, self._scan)
        self._counted: Counted | None = None
        self._observed: ObservedRows | None = None
        self._pairs = Observation()
        kinds = self._kinds() if group.unpaired else None
        if kinds is not None:
            self.rows = unpaired_rows(self._landing, kinds, slice_, footer).coalesce(group.parts)
        else:
            self._observed = observed_changes(self._read, slice_.projection)
            pairs = paired_rows(self._observed.rows, group, slice_, self._scan)
            self.rows = landed_in_parts(pairs, slice_.columns, footer, self._pairs)

    def write(self, folder: str) -> GroupRead:
        """Write the rows into the new folder. Raises DUPLICATE_KEY, ROWS_MISPLACED, and what Spark raises."""
        if self._observed is None:
            lengths = write_parts(self.rows, folder, self._slice.target_rows)
            if self._counted is None and self._slice.projection.where:
                (kind,) = self._scan.kinds
                scanned, landing = (ReadRows(**{kind.value: number_of(rows)}) for rows in (self._read, self._landing))
                self._counted = Counted.of_commit(self.group.first, scanned, landing)
            return GroupRead(self.group, self._counted, lengths)
        write_files(self.rows, folder)
        counts = observed(self._pairs)
        if repeats := counts[_DUPLICATES]:
            raise duplicate_key(self._slice.table, repeats, repeated_key_samples(self._landing, self._slice.keys))
        if misplaced := counts[_MISPLACED]:
            raise ROWS_MISPLACED(table=self._slice.table, rows=misplaced, first=self.group.first, last=self.group.last)
        lengths = long_values(_texts(self._slice.columns), counts)
        return GroupRead(self.group, self._observed.counted(), lengths)

    def _kinds(self) -> frozenset[str] | None:
        """Return the change types of the commit's rows, if no two of them can share a key."""
        if self._scan.kinds in _PLAIN:
            return frozenset(kind.value for kind in self._scan.kinds)
        landing = scanned = count_commit_rows(self._read, self._slice.keys)
        if self._slice.projection.where:
            landing = count_commit_rows(self._landing, self._slice.keys)
        may_share_keys = landing.changes_keys or (landing.read.insert and landing.read.delete)
        if not landing.read.kinds or may_share_keys:
            return None
        self._counted = Counted.of_commit(self.group.first, scanned.read, landing.read)
        return landing.read.kinds

    @property
    def _landing(self) -> DataFrame:
        return projected(self._read, self._slice.projection)


def encode_changes(
    spark: SparkSession, slice_: ChangesSlice, folder: str, footer: Mapping[str, str]
) -> tuple[GroupRead, ...]:
    """Write the slice's parts into `folder`, with a subfolder for each group of commits; their names sort by group.

    Raises DUPLICATE_KEY, with sample keys, when a key has two old or two new rows in one commit; ROWS_MISPLACED when
    Spark writes a row outside of its part; and the errors of `spark_error`.
    """
    with spark_errors(f"{slice_.table}, encoding changes of {slice_.scan.uri} into {folder}"):
        groups = encoded_groups(spark, slice_, footer)
        with ThreadPoolExecutor(_CONCURRENT_GROUPS) as pool:
            written = [
                pool.submit(for_thread(spark, group.write), f"{folder}/{number:05d}")
                for number, group in enumerate(groups)
            ]
            try:
                # The error of the first group that fails, in order, is raised.
                return tuple(one.result() for one in written)
            finally:
                pool.shutdown(cancel_futures=True)


def encoded_groups(spark: SparkSession, slice_: ChangesSlice, footer: Mapping[str, str]) -> list[EncodedGroup]:
    """Return the slice's groups in commit order, ready to write."""
    return [EncodedGroup(spark, slice_, group, footer) for group in group_commits(slice_.assignments)]


@dataclass(frozen=True)
class CommitRows:
    """A commit's row counts by change type, and whether its updates change keys."""

    read: ReadRows
    changes_keys: bool = False


def count_commit_rows(changes: DataFrame, keys: Sequence[str]) -> CommitRows:
    """Count the change feed rows of one commit, in one query."""
    # The sums of both halves of the keys' hashes are 0 if updates keep keys.
    sign = F.when(F.col(CHANGE_TYPE) == "update_postimage", 1).when(F.col(CHANGE_TYPE) == "update_preimage", -1)
    hash_ = F.xxhash64(*(F.col(quoted(key)) for key in keys))
    halves = {"low": hash_.bitwiseAND(_LOW_HALF), "high": F.shiftright(hash_, 32)}
    sums = [F.coalesce(F.sum(half * sign), F.lit(0)).alias(name) for name, half in halves.items()]
    row = changes.agg(*row_counts(), *sums).collect()[0]
    return CommitRows(ReadRows.of(row.asDict()), changes_keys=bool(row["low"] or row["high"]))


def unpaired_rows(
    changes: DataFrame, kinds: frozenset[str], slice_: ChangesSlice, footer: Mapping[str, str]
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
    values = values_where(has_values, changes, slice_.columns, slice_.keys)
    rows = landing.select(*values, marker.cast("int").alias(ROW_MARKER))
    return rows.select(*described(slice_.columns, footer), ROW_MARKER)


def paired_rows(changes: DataFrame, group: EncodeGroup, slice_: ChangesSlice, scan: Scan) -> DataFrame:
    """Return change feed rows in one Spark partition per part, sorted by commit and key hash; `scan` is what they read.

    Each row gets helper columns: the shuffle key of its part, whether the rows before and after it of the same key and
    commit are new, and whether it equals the row before. Of old rows, only the keys are shuffled, because a DELETE
    needs no more, and in the commits that replace files a hash of their values: most rows of these may be unchanged.
    """
    ours, is_new, columns, keys = HelperNames.beside(slice_.columns), is_new_row(), slice_.columns, slice_.keys
    replacing, hashed_keys = scan.replacing, f"hash({', '.join(map(quoted, keys))})"
    hash_ = F.expr(hashed_keys)
    # Spark's sort compares an 8-byte prefix of the first column, and the other columns only on a tie: so the commit
    # version is in the high half of the sort key, and the key's hash in the low half. The expression has no constant of
    # this slice: with one, Spark would compile the sort again for every slice.
    order = F.expr(f"shiftleft({COMMIT_VERSION}, 32) | (CAST({hashed_keys} AS BIGINT) & {_LOW_HALF}L)")
    # With the shuffle key among its columns, the window needs no shuffle of its own.
    window = Window.partitionBy(ours.order, ours.shuffle_key, *map(quoted, keys)).orderBy(ours.is_new)
    stamps = (ours.stamp_a, ours.stamp_b) if replacing else ()
    hashed = value_stamp(changes, [column for column in columns if column.name not in keys]) if replacing else ()
    rows = changes.select(
        shuffle_key(part_of_row(group, hash_), group.parts).alias(ours.shuffle_key),
        order.alias(ours.order),
        is_new.alias(ours.is_new),
        *values_where(is_new, changes, columns, keys),
        *(
            F.when(F.col(COMMIT_VERSION).isin(*replacing), value).alias(name)
            for name, value in zip(stamps, hashed, strict=True)
        ),
    )
    # A partition's rows are in one task in both cases. Without a shuffle, a small slice is one job of one task.
    rows = rows.coalesce(1) if _is_small(group, scan) else rows.repartition(group.parts, ours.shuffle_key)
    same = [F.coalesce(F.col(stamp) == F.lag(stamp).over(window), F.lit(col=False)) for stamp in stamps]
    # In one step: Spark analyzes the whole statement after each.
    return rows.withColumns(
        {
            ours.previous: F.lag(ours.is_new).over(window),
            ours.next: F.lead(ours.is_new).over(window),
            ours.is_same: same[0] & same[1] if same else F.lit(col=False),
        }
    )


def _is_small(group: EncodeGroup, scan: Scan) -> bool:
    sizes = [file.bytes for file in scan.files]  # 0 is unknown: a remove action may have no size
    return group.parts == 1 and len(sizes) <= _FEW_FILES and all(sizes) and sum(sizes) <= _SMALL_BYTES


def landed_in_parts(
    pairs: DataFrame, columns: Sequence[LandedColumn], footer: Mapping[str, str], counted: Observation
) -> DataFrame:
    """Return the landed rows of `paired_rows`; `counted` counts rows that repeat a key, misplaced rows, long values.

    A misplaced row is in another Spark partition than its part. A partition becomes the file with its index in the
    name, and operators after the shuffle may reorder partitions: `coalesce` does, even when their number stays the
    same. So apply no other operator after this one.
    """
    ours = HelperNames.beside(columns)
    lands = F.when(F.col(ours.is_new), ~F.col(ours.is_same)).otherwise(F.col(ours.next).isNull())
    placed = pairs.withColumn(ours.index, F.spark_partition_id()).observe(
        counted,
        F.expr(f"count_if({ours.previous} = {ours.is_new}) AS {_DUPLICATES}"),
        F.expr(f"count_if(hash({ours.shuffle_key}) != {ours.index}) AS {_MISPLACED}"),
        *longest_bytes(_texts(columns), lands),
    )
    update = f"IF({ours.previous} IS NULL, {Marker.INSERT:d}, {Marker.UPDATE:d})"
    marker = F.expr(f"IF({ours.is_new}, {update}, {Marker.DELETE:d})")
    return placed.where(lands).select(*described(columns, footer), marker.alias(ROW_MARKER))


def _texts(columns: Sequence[LandedColumn]) -> list[str]:
    """Return the columns that land as text or bytes, which may be long."""
    return [one.name for one in columns if column_type(one.type).family in (Family.TEXT, Family.BINARY)]


def repeated_key_samples(changes: DataFrame, keys: Sequence[str]) -> tuple[str, ...]:
    """Return up to five keys that have two old or two new rows in one commit, as readable text."""
    names = {f"key{index}": key for index, key in enumerate(keys)}
    columns = [F.col(quoted(key)).alias(alias) for alias, key in names.items()]
    grouped = changes.select(F.col(COMMIT_VERSION).alias("version"), is_new_row().alias("is_new"), *columns)
    counted = grouped.groupBy("version", "is_new", *names).agg(F.count(F.lit(1)).alias("rows"))
    rows = readable(counted.where("rows > 1").limit(_SAMPLES)).collect()
    return tuple(
        f"{shown_key({key: row[alias] for alias, key in names.items()})} at version {row['version']}" for row in rows
    )
