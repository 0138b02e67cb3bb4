"""A table's layout at one version (sizes, partitions, columns, V-Order, deletion vectors), and advice on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import median

import numpy as np

from mirror_assets.features.direct_lake.footers import Footers, Indexes
from mirror_assets.features.direct_lake.table_columns import ColumnNames, ParquetColumn, parquet_columns, percent
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot

_MB, _MILLION = 10**6, 10**6
# A table of files below 25 MB is fragmented; above 2 GB, files are too large (reference `direct-lake` §4).
_FILE_BYTES = (25 * _MB, 2_000 * _MB)
# Rows per row group: Microsoft advises 1 to 16 million; more is harmless (§4).
_GROUP_ROWS = (_MILLION, 16 * _MILLION)
# OPTIMIZE rewrites files of whose rows more is hidden (§4, §5; `optimize.maxDeletedRowsRatio`).
MANY_HIDDEN_PERCENT = 5.0
# Readers open about as many files at once as they have cores.
_FEW_FILES = 8
_MOST_PARTITIONS = 200
_MUCH_DROPPED_PERCENT = 1.0
_LARGE_COLUMN_PERCENT = 10.0


@dataclass(frozen=True)
class SizeSummary:
    """Some sizes: their number and sum, and how many are `small` or `large`, by limits of the summary.

    `least`, `middle` (the median) and `most` are 0 without any. The small ones add up to `small_total`.
    """

    count: int
    total: int
    least: int
    middle: float
    most: int
    small: int
    small_total: int
    large: int

    @classmethod
    def of(cls, sizes: Sequence[int] | Indexes, limits: tuple[int, int]) -> SizeSummary:
        """Summarise the sizes: those below the first limit are small, those from the second limit on are large."""
        found = np.asarray(sizes, np.int64)
        small = found[found < limits[0]]
        return cls(
            count=len(found),
            total=int(found.sum()),
            least=int(found.min()) if len(found) else 0,
            middle=float(np.median(found)) if len(found) else 0,
            most=int(found.max(initial=0)),
            small=len(small),
            small_total=int(small.sum()),
            large=int((found >= limits[1]).sum()),
        )


@dataclass(frozen=True)
class PartitionSummary:
    """The partitions of a table; a table without partition columns has one, an empty table none.

    `skew` is the bytes of the largest one as a multiple of the median; None without partitions.
    """

    columns: tuple[str, ...]
    count: int
    least_files: int
    most_files: int
    skew: float | None


@dataclass(frozen=True)
class LayoutReport:
    """The layout of a version. `writers` counts files by their `created_by`.

    Sizes of `files` are in bytes, those of `row_groups` in rows. `rows` are stored ones. Deletion vectors hide
    `hidden_rows` of them, and more than 5 % of the rows in `much_hidden_files`. `vorder_percent` is of rows.
    """

    uri: str
    version: int
    files: SizeSummary
    rows: int
    row_groups: SizeSummary
    vorder_files: int
    vorder_percent: float
    hidden_rows: int
    much_hidden_files: int
    partitions: PartitionSummary
    columns: tuple[ParquetColumn, ...]
    writers: Mapping[str, int] = field(default_factory=dict)

    @property
    def hidden_percent(self) -> float:
        """Hidden rows, in percent of the stored ones."""
        return percent(self.hidden_rows, self.rows)

    @property
    def dropped_bytes(self) -> int:
        """Compressed bytes of dropped columns."""
        return sum(column.compressed for column in self.columns if column.is_dropped)


def layout_report(snapshot: Snapshot, footers: Footers) -> LayoutReport:
    """Describe the version; `footers` are those of its files, in their order. Raises SCHEMA_UNREADABLE."""
    count, rows = len(snapshot.files), int(footers.rows.sum())
    sizes = np.fromiter((file.bytes for file in snapshot.files), np.int64, count)
    hidden = np.fromiter((file.hidden_rows for file in snapshot.files), np.int64, count)
    return LayoutReport(
        uri=snapshot.uri,
        version=snapshot.version,
        files=SizeSummary.of(sizes, _FILE_BYTES),
        rows=rows,
        row_groups=SizeSummary.of(footers.group_rows, _GROUP_ROWS),
        vorder_files=int(footers.vorder.sum()),
        vorder_percent=percent(int(footers.rows[footers.vorder].sum()), rows),
        hidden_rows=int(hidden.sum()),
        much_hidden_files=int(((100 * hidden > MANY_HIDDEN_PERCENT * footers.rows) & (footers.rows > 0)).sum()),
        partitions=_partitions(snapshot.files, snapshot.metadata.partition_columns),
        columns=parquet_columns(footers, ColumnNames.of(snapshot.metadata)),
        writers=footers.writers,
    )


def _partitions(files: Sequence[LiveFile], columns: Sequence[str]) -> PartitionSummary:
    sizes: defaultdict[tuple[str | None, ...], list[int]] = defaultdict(list)
    for file in files:
        sizes[tuple(file.partition.get(name) for name in columns)].append(file.bytes)
    counts, totals = [len(found) for found in sizes.values()], [sum(found) for found in sizes.values()]
    middle = median(totals) if columns and totals else 0
    return PartitionSummary(
        columns=tuple(columns),
        count=len(sizes),
        least_files=min(counts, default=0),
        most_files=max(counts, default=0),
        skew=max(totals) / middle if middle else None,
    )


class AdviceTopic(str, Enum):
    """The topics of advice, the most important first."""

    SMALL_FILES = "small files"
    ROW_GROUPS = "row groups"
    VORDER = "V-Order"
    VECTORS = "deletion vectors"
    DICTIONARIES = "dictionaries"
    PARTITIONS = "partitions"
    DROPPED = "dropped columns"
    LARGE_FILES = "large files"


@dataclass(frozen=True)
class Advice:
    """A finding and its remedy."""

    topic: AdviceTopic
    found: str
    do: str

    def __str__(self) -> str:
        """Both in one text."""
        return f"{self.found}: {self.do}"


def advice(report: LayoutReport) -> tuple[Advice, ...]:
    """Return all advice on the layout, the most important first (rules: reference `direct-lake` §4).

    Below a million rows, the order of rows in files makes no difference: Direct Lake reads them in one go. Files and
    partitions still count there, because of the capacity's limits and the time to open them.
    """
    found = list(_advice_on_files(report))
    if report.rows >= _MILLION:
        found += [*_advice_on_rows(report), *_advice_on_columns(report)]
    most_important_first = list(AdviceTopic)
    return tuple(sorted(found, key=lambda one: most_important_first.index(one.topic)))


def _advice_on_files(report: LayoutReport) -> Iterator[Advice]:
    files, partitions = report.files, report.partitions.count
    if files.small > max(_FEW_FILES, partitions, files.count / 2):
        yield Advice(
            AdviceTopic.SMALL_FILES,
            f"{files.small:,} of {files.count:,} files have less than 25 MB",
            "compact them with OPTIMIZE, in a partitioned table only where files are new",
        )
    if report.partitions.columns and partitions > _MOST_PARTITIONS:
        yield Advice(
            AdviceTopic.PARTITIONS,
            f"{partitions:,} partitions keep files small",
            "partition by a coarser key, of less than 100 to 200 values, or not at all",
        )


def _advice_on_rows(report: LayoutReport) -> Iterator[Advice]:
    groups = report.row_groups
    if groups.small >= 2 and 2 * groups.small_total > report.rows:
        yield Advice(
            AdviceTopic.ROW_GROUPS,
            f"{groups.small:,} of {groups.count:,} row groups have less than 1 million rows",
            "make OPTIMIZE and writers write groups of 1 to 16 million, e.g. parquet.block.row.count.limit = 8000000",
        )
    without_vorder = report.files.count - report.vorder_files
    if without_vorder:
        yield Advice(
            AdviceTopic.VORDER,
            f"{without_vorder:,} of {report.files.count:,} files are not V-Ordered",
            "run OPTIMIZE … VORDER in Fabric if cold queries are slow; other engines can't write V-Order",
        )
    if report.much_hidden_files or report.hidden_percent > MANY_HIDDEN_PERCENT:
        yield Advice(
            AdviceTopic.VECTORS,
            f"deletion vectors hide {report.hidden_percent:.1f} % of the rows, and over 5 % in "
            f"{report.much_hidden_files:,} files; Direct Lake loads hidden rows also",
            "run OPTIMIZE, or REORG TABLE … APPLY (PURGE) for all files with a vector",
        )
    if report.files.large:
        yield Advice(
            AdviceTopic.LARGE_FILES,
            f"{report.files.large:,} files have more than 2 GB",
            "write smaller ones: a change rewrites, and Direct Lake reloads, whole files",
        )


def _advice_on_columns(report: LayoutReport) -> Iterator[Advice]:
    large = [
        column.label
        for column in report.columns
        if column.share >= _LARGE_COLUMN_PERCENT and column.without_dictionary_percent > 50
        if not column.is_dropped and column.physical_types != ("BOOLEAN",)  # two values need no dictionary
    ]
    if large:
        yield Advice(
            AdviceTopic.DICTIONARIES,
            f"{', '.join(large)}: mostly without dictionaries, so there are many different values",
            "round floats, split date from time, or leave columns that no one groups by out of the model",
        )
    if 100 * report.dropped_bytes > _MUCH_DROPPED_PERCENT * report.files.total:
        yield Advice(
            AdviceTopic.DROPPED,
            f"{report.dropped_bytes:,} bytes belong to columns that the table no longer has",
            "run REORG TABLE … APPLY (PURGE), then VACUUM",
        )
