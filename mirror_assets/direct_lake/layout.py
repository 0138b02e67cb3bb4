"""A table's layout at one version (sizes, partitions, columns, V-Order, deletion vectors), and advice on it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from statistics import median

from mirror_assets.direct_lake.columns import ColumnLayout, ColumnNames, column_layouts, percent
from mirror_assets.direct_lake.footers import Footers
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot

_MB, _GB = 10**6, 10**9
_MILLION = 10**6
# Rows per row group: Microsoft advises 1 to 16 million; more is harmless (reference `direct-lake` §4).
ROW_GROUP_BOUNDS = (0, 10_000, 100_000, 10**6, 8 * 10**6, 16 * 10**6)
# Bytes per file: a table of files below 25 MB is fragmented, 400 MB to 1 GB is best, above 2 GB is too large (§4).
FILE_BOUNDS = (0, _MB, 8 * _MB, 25 * _MB, 128 * _MB, 400 * _MB, _GB, 2 * _GB)
_SMALL_FILE_BYTES = 25 * _MB
# OPTIMIZE rewrites files of whose rows more is hidden (§4, §5; `optimize.maxDeletedRowsRatio`).
MANY_HIDDEN_PERCENT = 5.0
# Readers open about as many files at once as they have cores.
_FEW_FILES = 8
_MOST_PARTITIONS = 200
_MUCH_DROPPED_PERCENT = 1.0
_LARGE_COLUMN_PERCENT = 10.0


@dataclass(frozen=True)
class SizeRange:
    """Sizes from `least` to below `below` (None: no end): how many there are, and their sum."""

    least: int
    below: int | None
    count: int
    total: int


@dataclass(frozen=True)
class Histogram:
    """Sizes counted in fixed ranges, the smallest first, so that reports of different tables are comparable."""

    ranges: tuple[SizeRange, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], bounds: Sequence[int]) -> Histogram:
        """Count the sizes in ranges that begin at the bounds, the first of which is 0."""
        counts, totals = [0] * len(bounds), [0] * len(bounds)
        for size in sizes:
            index = bisect_right(bounds, size) - 1
            counts[index] += 1
            totals[index] += size
        ends = [*(end for _, end in pairwise(bounds)), None]
        return cls(tuple(SizeRange(*row) for row in zip(bounds, ends, counts, totals, strict=True)))

    @property
    def count(self) -> int:
        """How many sizes there are."""
        return sum(one.count for one in self.ranges)

    @property
    def total(self) -> int:
        """Their sum."""
        return sum(one.total for one in self.ranges)

    def below(self, bound: int) -> SizeRange:
        """Return the sizes below one of the bounds as one range."""
        smaller = [one for one in self.ranges if one.least < bound]
        return SizeRange(0, bound, sum(one.count for one in smaller), sum(one.total for one in smaller))


@dataclass(frozen=True)
class PartitionLayout:
    """One partition: its values by column name; `rows` are stored ones, None without statistics."""

    values: tuple[tuple[str, str | None], ...]
    files: int
    bytes: int
    rows: int | None

    def __str__(self) -> str:
        """The values as a folder has them."""
        return "/".join(f"{name}={'null' if value is None else value}" for name, value in self.values)


@dataclass(frozen=True)
class Partitions:
    """All partitions of a table, ordered by their values; a table without partition columns has one."""

    columns: tuple[str, ...]
    each: tuple[PartitionLayout, ...]

    @property
    def skew(self) -> float | None:
        """Bytes of the largest partition as a multiple of the median; None without partitions."""
        sizes = [one.bytes for one in self.each]
        middle = median(sizes) if self.columns and sizes else 0
        return max(sizes) / middle if middle else None


@dataclass(frozen=True)
class LayoutReport:
    """The layout of a version. `writers` counts files by their `created_by`.

    File sizes are in bytes, row groups in rows; medians are None without any. `rows` are stored ones. Deletion vectors
    hide `hidden_rows` of them, and more than 5 % of the rows in `much_hidden_files`. `vorder_percent` is of rows.
    `chunks` are the column chunks that a model with all columns loads.
    """

    uri: str
    version: int
    files: int
    bytes: int
    rows: int
    chunks: int
    file_sizes: Histogram
    file_bytes_median: float | None
    row_groups: Histogram
    row_group_median: float | None
    vorder_files: int
    vorder_percent: float
    hidden_rows: int
    much_hidden_files: int
    partitions: Partitions
    columns: tuple[ColumnLayout, ...]
    writers: Mapping[str, int] = field(default_factory=dict)

    @property
    def hidden_percent(self) -> float:
        """Hidden rows, in percent of the stored ones."""
        return percent(self.hidden_rows, self.rows)

    @property
    def small_files(self) -> int:
        """Files below 25 MB, which fragment the table."""
        return self.file_sizes.below(_SMALL_FILE_BYTES).count

    @property
    def dropped_bytes(self) -> int:
        """Compressed bytes of dropped columns."""
        return sum(column.parquet.compressed for column in self.columns if column.is_dropped)


def layout_report(snapshot: Snapshot, footers: Footers) -> LayoutReport:
    """Describe the version; `footers` are those of its files, in their order. Raises SchemaUnreadable."""
    sizes, rows = [file.bytes for file in footers.files], sum(file.rows for file in footers.files)
    ordered = [file for file in footers.files if file.vorder]
    return LayoutReport(
        uri=snapshot.uri,
        version=snapshot.version,
        files=len(footers.files),
        bytes=sum(sizes),
        rows=rows,
        chunks=footers.chunks.num_rows,
        file_sizes=Histogram.of(sizes, FILE_BOUNDS),
        file_bytes_median=median(sizes) if sizes else None,
        row_groups=Histogram.of(footers.group_rows, ROW_GROUP_BOUNDS),
        row_group_median=median(footers.group_rows) if footers.group_rows else None,
        vorder_files=len(ordered),
        vorder_percent=percent(sum(file.rows for file in ordered), rows),
        hidden_rows=sum(file.hidden_rows for file in snapshot.files),
        much_hidden_files=sum(
            percent(live.hidden_rows, file.rows) > MANY_HIDDEN_PERCENT
            for live, file in zip(snapshot.files, footers.files, strict=True)
        ),
        partitions=_partitions(snapshot.files, snapshot.metadata.partition_columns),
        columns=column_layouts(footers, ColumnNames.of(snapshot.metadata)),
        writers=Counter(file.created_by for file in footers.files),
    )


def _partitions(files: Sequence[LiveFile], columns: Sequence[str]) -> Partitions:
    grouped: defaultdict[tuple[tuple[str, str | None], ...], list[LiveFile]] = defaultdict(list)
    for file in files:
        grouped[tuple((name, file.partition.get(name)) for name in columns)].append(file)
    each = []
    for values, those in sorted(grouped.items(), key=lambda item: [(v is not None, v or "") for _, v in item[0]]):
        rows = [file.rows for file in those if file.rows is not None]
        known = sum(rows) if len(rows) == len(those) else None
        each.append(PartitionLayout(values, len(those), sum(file.bytes for file in those), known))
    return Partitions(tuple(columns), tuple(each))


class AdviceTopic(str, Enum):
    """What advice is about, the most important first."""

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
    """A finding, and what to do about it."""

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
    partitions = len(report.partitions.each)
    if report.small_files > max(_FEW_FILES, partitions, report.files / 2):
        yield Advice(
            AdviceTopic.SMALL_FILES,
            f"{report.small_files:,} of {report.files:,} files have less than 25 MB",
            "compact them with OPTIMIZE, in a partitioned table only where files are new",
        )
    if report.partitions.columns and partitions > _MOST_PARTITIONS:
        yield Advice(
            AdviceTopic.PARTITIONS,
            f"{partitions:,} partitions keep files small",
            "partition by a coarser key, of less than 100 to 200 values, or not at all",
        )


def _advice_on_rows(report: LayoutReport) -> Iterator[Advice]:
    small = report.row_groups.below(_MILLION)
    if small.count >= 2 and 2 * small.total > report.rows:
        yield Advice(
            AdviceTopic.ROW_GROUPS,
            f"{small.count:,} of {report.row_groups.count:,} row groups have less than 1 million rows",
            "make OPTIMIZE and writers write groups of 1 to 16 million, e.g. parquet.block.row.count.limit = 8000000",
        )
    without_vorder = report.files - report.vorder_files
    if without_vorder:
        yield Advice(
            AdviceTopic.VORDER,
            f"{without_vorder:,} of {report.files:,} files are not V-Ordered",
            "run OPTIMIZE … VORDER in Fabric if cold queries are slow; other engines can't write V-Order",
        )
    if report.much_hidden_files or report.hidden_percent > MANY_HIDDEN_PERCENT:
        yield Advice(
            AdviceTopic.VECTORS,
            f"deletion vectors hide {report.hidden_percent:.1f} % of the rows, and over 5 % in "
            f"{report.much_hidden_files:,} files; Direct Lake loads hidden rows also",
            "run OPTIMIZE, or REORG TABLE … APPLY (PURGE) for all files with a vector",
        )
    large_files = report.file_sizes.ranges[-1].count
    if large_files:
        yield Advice(
            AdviceTopic.LARGE_FILES,
            f"{large_files:,} files have more than 2 GB",
            "write smaller ones: a change rewrites, and Direct Lake reloads, whole files",
        )


def _advice_on_columns(report: LayoutReport) -> Iterator[Advice]:
    large = [
        column.label
        for column in report.columns
        if column.share >= _LARGE_COLUMN_PERCENT and column.parquet.without_dictionary_percent > 50
        if not column.is_dropped and column.parquet.physical_types != ("BOOLEAN",)  # two values need no dictionary
    ]
    if large:
        yield Advice(
            AdviceTopic.DICTIONARIES,
            f"{', '.join(large)}: mostly without dictionaries, so there are many different values",
            "round them, split date from time, or leave columns that no one groups by out of the model",
        )
    if 100 * report.dropped_bytes > _MUCH_DROPPED_PERCENT * report.bytes:
        yield Advice(
            AdviceTopic.DROPPED,
            f"{report.dropped_bytes:,} bytes belong to columns that the table no longer has",
            "run REORG TABLE … APPLY (PURGE), then VACUUM",
        )
