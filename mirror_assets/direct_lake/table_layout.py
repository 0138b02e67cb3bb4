"""How a table lies in its files at one version: sizes, partitions, columns, V-Order and deletion vectors."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.direct_lake.footers.facts import Coding, FileFacts, Footers
from mirror_assets.direct_lake.footers.parquet_columns import ColumnNames, ParquetColumn, parquet_columns
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot

MB, GB = 10**6, 10**9
# Rows per row group: 1 to 16 million is what Microsoft advises, larger does no harm (reference `direct-lake` §4).
ROW_GROUP_BINS = (0, 10_000, 100_000, 10**6, 8 * 10**6, 16 * 10**6)
# Bytes per file: below 25 MB a table is fragmented, 400 MB to 1 GB is best, above 2 GB too large (§4).
FILE_BINS = (0, MB, 8 * MB, 25 * MB, 128 * MB, 400 * MB, GB, 2 * GB)
SMALL_FILE_BYTES = 25 * MB
# OPTIMIZE rewrites files of which more is hidden (reference §4, §5; `optimize.maxDeletedRowsRatio`).
MANY_HIDDEN_PERCENT = 5.0


@dataclass(frozen=True)
class LayoutReport:
    """How a version of a table lies in its files. `writers` counts files by who wrote them.

    Sizes of files are in bytes, healthy within a factor of 2, and those of row groups in rows. `rows` are those stored,
    hidden ones included. Loading all columns, Direct Lake puts together as many pieces as there are column `chunks`.
    """

    uri: str
    version: int
    files: int
    bytes: int
    rows: int
    chunks: int
    file_sizes: Histogram
    file_spread: Spread | None
    row_groups: Histogram
    row_group_spread: Spread | None
    vorder: VOrderShare
    vectors: VectorShare
    partitions: Partitions
    columns: tuple[ColumnLayout, ...]
    writers: Mapping[str, int] = field(default_factory=dict)

    @property
    def small_files(self) -> Bin:
        """Files that fragment the table."""
        return self.file_sizes.below(SMALL_FILE_BYTES)

    @property
    def dropped_bytes(self) -> int:
        """Compressed bytes of dropped columns."""
        return sum(column.parquet.compressed for column in self.columns if column.is_dropped)


def layout_report(snapshot: Snapshot, footers: Footers) -> LayoutReport:
    """Describe the version; `footers` are those of its files, in their order. Raises SchemaUnreadable."""
    sizes, rows = [file.bytes for file in footers.files], [group.rows for group in footers.row_groups]
    return LayoutReport(
        uri=snapshot.uri,
        version=snapshot.version,
        files=len(footers.files),
        bytes=sum(sizes),
        rows=sum(file.rows for file in footers.files),
        chunks=footers.chunks.num_rows,
        file_sizes=Histogram.of(sizes, FILE_BINS),
        file_spread=Spread.of(sizes),
        row_groups=Histogram.of(rows, ROW_GROUP_BINS),
        row_group_spread=Spread.of(rows),
        vorder=_vorder(footers.files),
        vectors=_vectors(snapshot.files, footers.files),
        partitions=_partitions(snapshot.files, snapshot.metadata.partition_columns),
        columns=_columns(parquet_columns(footers), ColumnNames.of(snapshot.metadata)),
        writers=Counter(file.created_by for file in footers.files),
    )


def percent(part: int, whole: int) -> float:
    """Return the part of 100; 0 of nothing."""
    return 100 * part / whole if whole else 0.0


@dataclass(frozen=True)
class Bin:
    """Sizes from `least` to below `below` (None: no end): how many there are, and what they add up to."""

    least: int
    below: int | None
    count: int
    total: int


@dataclass(frozen=True)
class Histogram:
    """Sizes counted in fixed bins, the smallest first, so that reports of different tables are comparable."""

    bins: tuple[Bin, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], bounds: Sequence[int]) -> Histogram:
        """Count the sizes in bins that begin at the bounds, the first of which is 0."""
        counts, totals = [0] * len(bounds), [0] * len(bounds)
        for size in sizes:
            index = bisect_right(bounds, size) - 1
            counts[index] += 1
            totals[index] += size
        ends = [*(end for _, end in pairwise(bounds)), None]
        return cls(tuple(Bin(*row) for row in zip(bounds, ends, counts, totals, strict=True)))

    @property
    def count(self) -> int:
        """How many sizes there are."""
        return sum(one.count for one in self.bins)

    @property
    def total(self) -> int:
        """What they add up to."""
        return sum(one.total for one in self.bins)

    def below(self, bound: int) -> Bin:
        """Return what is smaller than one of the bounds, as one bin."""
        smaller = [one for one in self.bins if one.least < bound]
        return Bin(0, bound, sum(one.count for one in smaller), sum(one.total for one in smaller))


@dataclass(frozen=True)
class Spread:
    """The smallest, the middle and the largest of some sizes."""

    least: int
    median: float
    most: int

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Spread | None:
        """Return that of the sizes; None when there are none."""
        return cls(min(sizes), median(sizes), max(sizes)) if sizes else None


@dataclass(frozen=True)
class VOrderShare:
    """How much is V-Ordered, file by file, as footers say; shares are of 100."""

    files: int
    files_share: float
    rows_share: float


def _vorder(files: tuple[FileFacts, ...]) -> VOrderShare:
    ordered = [file for file in files if file.vorder]
    return VOrderShare(
        files=len(ordered),
        files_share=percent(len(ordered), len(files)),
        rows_share=percent(sum(file.rows for file in ordered), sum(file.rows for file in files)),
    )


@dataclass(frozen=True)
class VectorShare:
    """What deletion vectors hide: `files` with one, `much_hidden` of them with more than 5 % of their rows."""

    files: int
    much_hidden: int
    rows: int
    rows_share: float


def _vectors(live: tuple[LiveFile, ...], files: tuple[FileFacts, ...]) -> VectorShare:
    hidden = [(one.vector.rows, file.rows) for one, file in zip(live, files, strict=True) if one.vector]
    rows = sum(count for count, _ in hidden)
    return VectorShare(
        files=len(hidden),
        much_hidden=sum(percent(count, stored) > MANY_HIDDEN_PERCENT for count, stored in hidden),
        rows=rows,
        rows_share=percent(rows, sum(file.rows for file in files)),
    )


@dataclass(frozen=True)
class PartitionLayout:
    """One partition: values by the partition columns' names, in their order; `rows` stored, None when not known."""

    values: tuple[tuple[str, str | None], ...]
    files: int
    bytes: int
    rows: int | None

    def __str__(self) -> str:
        """Its values as a folder has them."""
        return "/".join(f"{name}={'null' if value is None else value}" for name, value in self.values)


@dataclass(frozen=True)
class Partitions:
    """All partitions of a table, by their values; one without columns for a table that has none."""

    columns: tuple[str, ...]
    each: tuple[PartitionLayout, ...]

    @property
    def skew(self) -> float | None:
        """How many times the median partition's bytes the largest has; None without partitions."""
        sizes = [one.bytes for one in self.each]
        middle = median(sizes) if self.columns and sizes else 0
        return max(sizes) / middle if middle else None


def _partitions(files: Sequence[LiveFile], columns: Sequence[str]) -> Partitions:
    grouped: defaultdict[tuple[tuple[str, str | None], ...], list[LiveFile]] = defaultdict(list)
    for file in files:
        grouped[tuple((name, file.partition.get(name)) for name in columns)].append(file)
    ordered = sorted(grouped.items(), key=lambda item: [(value is not None, value or "") for _, value in item[0]])
    return Partitions(
        tuple(columns),
        tuple(
            PartitionLayout(values, len(those), sum(file.bytes for file in those), _stored_rows(those))
            for values, those in ordered
        ),
    )


def _stored_rows(files: Sequence[LiveFile]) -> int | None:
    rows = [file.rows for file in files if file.rows is not None]
    return sum(rows) if len(rows) == len(files) else None


@dataclass(frozen=True)
class ColumnLayout:
    """A leaf column of the files. `name` is the table's column that it belongs to, None when that is gone, or Delta's.

    `label` is its path by the table's names. `is_dropped`: the table has no such column any more, but the files still
    do. Shares are of 100.
    """

    name: str | None
    label: str
    is_dropped: bool
    share: float
    parquet: ParquetColumn

    @property
    def without_dictionary_share(self) -> float:
        """Column chunks with pages that do without a dictionary, of 100."""
        codings = self.parquet.codings
        return percent(codings.get(Coding.MIXED, 0) + codings.get(Coding.PLAIN, 0), sum(codings.values()))


def _columns(columns: Sequence[ParquetColumn], names: ColumnNames) -> tuple[ColumnLayout, ...]:
    """The columns, the largest first."""
    total = sum(column.compressed for column in columns)
    return tuple(
        ColumnLayout(
            name=names.column(column.path),
            label=names.label(column.path),
            is_dropped=names.is_dropped(column.path),
            share=percent(column.compressed, total),
            parquet=column,
        )
        for column in sorted(columns, key=lambda column: -column.compressed)
    )


def dropped_bytes(footers: Footers, names: ColumnNames) -> dict[str, int]:
    """Return the compressed bytes of dropped columns, by file; files without any are left out."""
    chunks = footers.chunks
    gone = [path for path in pc.unique(chunks["column"]).to_pylist() if names.is_dropped(path)]
    found = chunks.filter(pc.is_in(chunks["column"], pa.array(gone, pa.string())))
    sums = found.group_by("file").aggregate([("compressed", "sum")])
    return {
        footers.files[file].path: size
        for file, size in zip(sums["file"].to_pylist(), sums["compressed_sum"].to_pylist(), strict=True)
    }
