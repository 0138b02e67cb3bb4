"""What of a layout makes Direct Lake slow, and what to do about it (rules: reference `direct-lake` §4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from mirror_assets.direct_lake.table_layout import MANY_HIDDEN_PERCENT, LayoutReport

_MILLION = 10**6
# A table read by about as many files as the reader has cores needs no compaction.
_FEW_FILES = 8
_MOST_PARTITIONS = 200
_MUCH_DROPPED_PERCENT = 1.0
_LARGE_COLUMN_PERCENT = 10.0


class Topic(str, Enum):
    """What advice is about."""

    SMALL_FILES = "small files"
    LARGE_FILES = "large files"
    ROW_GROUPS = "row groups"
    VORDER = "V-Order"
    VECTORS = "deletion vectors"
    PARTITIONS = "partitions"
    DROPPED = "dropped columns"
    DICTIONARIES = "dictionaries"


@dataclass(frozen=True)
class Advice:
    """What was found, and what to do about it."""

    topic: Topic
    found: str
    do: str

    def __str__(self) -> str:
        """Both in one text."""
        return f"{self.found}: {self.do}"


def advice(report: LayoutReport) -> tuple[Advice, ...]:
    """Return all advice on the layout, what weighs most first; nothing when it is fine.

    How the rows of a table below a million lie in its files makes no difference: Direct Lake reads them in one go.
    Files and partitions still count there, against the capacity's limits and for the time to open them.
    """
    if report.rows < _MILLION:
        return (*_small_files(report), *_partitions(report))
    return (
        *_small_files(report),
        *_row_groups(report),
        *_vorder(report),
        *_vectors(report),
        *_dictionaries(report),
        *_partitions(report),
        *_dropped(report),
        *_large_files(report),
    )


def _small_files(report: LayoutReport) -> Iterator[Advice]:
    small, partitions = report.small_files.count, len(report.partitions.each)
    if small > max(_FEW_FILES, partitions, report.files / 2):
        found = f"{small:,} of {report.files:,} files have less than 25 MB"
        do = "compact them with OPTIMIZE, of a partitioned table where they are new"
        yield Advice(Topic.SMALL_FILES, found, do)


def _row_groups(report: LayoutReport) -> Iterator[Advice]:
    small = report.row_groups.below(_MILLION)
    if small.count >= 2 and 2 * small.total > report.rows:
        found = f"{small.count:,} of {report.row_groups.count:,} row groups have less than 1 million rows"
        do = "have OPTIMIZE, and writers, make groups of 1 to 16 million, like parquet.block.row.count.limit = 8000000"
        yield Advice(Topic.ROW_GROUPS, found, do)


def _vorder(report: LayoutReport) -> Iterator[Advice]:
    without = report.files - report.vorder.files
    if without:
        do = "run OPTIMIZE … VORDER in Fabric, where cold queries gain by it; others can't write it"
        yield Advice(Topic.VORDER, f"{without:,} of {report.files:,} files are not V-Ordered", do)


def _vectors(report: LayoutReport) -> Iterator[Advice]:
    vectors = report.vectors
    if vectors.much_hidden or vectors.rows_share > MANY_HIDDEN_PERCENT:
        found = (
            f"deletion vectors hide {vectors.rows_share:.1f} % of the rows, in {vectors.much_hidden:,} files over 5 %; "
            "Direct Lake loads them all, hidden or not"
        )
        yield Advice(Topic.VECTORS, found, "run OPTIMIZE, or REORG TABLE … APPLY (PURGE) for all files with one")


def _dictionaries(report: LayoutReport) -> Iterator[Advice]:
    large = [
        column.label
        for column in report.columns
        if column.share >= _LARGE_COLUMN_PERCENT and column.without_dictionary_share > 50 and not column.is_dropped
        if column.parquet.physical_types != ("BOOLEAN",)  # two values need no dictionary
    ]
    if large:
        found = f"{', '.join(large)}: mostly without dictionaries, as of too many different values"
        do = "round them, split date from time, or leave out of the model what nobody groups by"
        yield Advice(Topic.DICTIONARIES, found, do)


def _partitions(report: LayoutReport) -> Iterator[Advice]:
    count = len(report.partitions.each)
    if report.partitions.columns and count > _MOST_PARTITIONS:
        do = "partition by a coarser key, of less than 100 to 200 values, or not at all"
        yield Advice(Topic.PARTITIONS, f"{count:,} partitions keep files small", do)


def _dropped(report: LayoutReport) -> Iterator[Advice]:
    size = report.dropped_bytes
    if 100 * size > _MUCH_DROPPED_PERCENT * report.bytes:
        found = f"{size:,} bytes belong to columns that the table has no more"
        yield Advice(Topic.DROPPED, found, "run REORG TABLE … APPLY (PURGE), then VACUUM")


def _large_files(report: LayoutReport) -> Iterator[Advice]:
    large = report.file_sizes.bins[-1].count
    if large:
        do = "write smaller ones, as a change rewrites, and Direct Lake reloads, whole files"
        yield Advice(Topic.LARGE_FILES, f"{large:,} files have more than 2 GB", do)
