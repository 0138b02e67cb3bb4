"""The layout of a table at one version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirror_assets.direct_lake.footers.columns import parquet_columns
from mirror_assets.direct_lake.footers.footers import FileFacts, Footers
from mirror_assets.direct_lake.footers.mapping import ColumnNames
from mirror_assets.direct_lake.layout.columns import ColumnLayout, column_layouts, percent
from mirror_assets.direct_lake.layout.histogram import FILE_BINS, MB, ROW_GROUP_BINS, Bin, Histogram, Spread
from mirror_assets.direct_lake.layout.partitions import Partitions, partitions
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot

# Below it a file is small (reference `direct-lake` §4).
SMALL_FILE_BYTES = 25 * MB
# OPTIMIZE rewrites files of which more is hidden (reference §4, §5; `optimize.maxDeletedRowsRatio`).
MANY_HIDDEN_PERCENT = 5.0


@dataclass(frozen=True)
class VOrderShare:
    """How much is V-Ordered, file by file, as footers say; shares are of 100."""

    files: int
    files_share: float
    rows_share: float


@dataclass(frozen=True)
class VectorShare:
    """What deletion vectors hide: `files` with one, `much_hidden` of them with more than 5 % of their rows."""

    files: int
    much_hidden: int
    rows: int
    rows_share: float


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
        """The files of less than 25 MB."""
        return self.file_sizes.below(SMALL_FILE_BYTES)

    @property
    def dropped_bytes(self) -> int:
        """Compressed bytes of columns that the table has no more."""
        return sum(column.parquet.compressed for column in self.columns if column.is_dropped)


def layout_report(snapshot: Snapshot, footers: Footers) -> LayoutReport:
    """The layout of the version; `footers` are those of its files, in their order. Raises SchemaUnreadable."""
    return LayoutReport(
        uri=snapshot.uri,
        version=snapshot.version,
        files=len(footers.files),
        bytes=sum(file.bytes for file in footers.files),
        rows=sum(file.rows for file in footers.files),
        chunks=footers.chunks.num_rows,
        file_sizes=Histogram.of([file.bytes for file in footers.files], FILE_BINS),
        file_spread=Spread.of([file.bytes for file in footers.files]),
        row_groups=Histogram.of([group.rows for group in footers.row_groups], ROW_GROUP_BINS),
        row_group_spread=Spread.of([group.rows for group in footers.row_groups]),
        vorder=_vorder(footers.files),
        vectors=_vectors(snapshot.files, footers.files),
        partitions=partitions(snapshot.files, snapshot.metadata.partition_columns),
        columns=column_layouts(parquet_columns(footers), ColumnNames.of(snapshot.metadata)),
        writers=Counter(file.created_by for file in footers.files),
    )


def _vorder(files: tuple[FileFacts, ...]) -> VOrderShare:
    ordered = [file for file in files if file.vorder]
    return VOrderShare(
        files=len(ordered),
        files_share=percent(len(ordered), len(files)),
        rows_share=percent(sum(file.rows for file in ordered), sum(file.rows for file in files)),
    )


def _vectors(live: tuple[LiveFile, ...], files: tuple[FileFacts, ...]) -> VectorShare:
    hidden = [(one.vector.rows, file.rows) for one, file in zip(live, files, strict=True) if one.vector]
    rows = sum(count for count, _ in hidden)
    return VectorShare(
        files=len(hidden),
        much_hidden=sum(percent(count, stored) > MANY_HIDDEN_PERCENT for count, stored in hidden),
        rows=rows,
        rows_share=percent(rows, sum(file.rows for file in files)),
    )
