"""What of a layout makes Direct Lake slow, and what to do about it (rules: reference `direct-lake` §4)."""

from __future__ import annotations

from collections.abc import Callable
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
    """All that there is to say of the layout, what weighs most first; nothing when it is fine.

    How the rows of a table below a million lie in its files makes no difference: Direct Lake reads them in one go.
    """
    rules = _RULES if report.rows >= _MILLION else [rule for rule in _RULES if rule in _OF_ANY_TABLE]
    found = (rule(report) for rule in rules)
    return tuple(one for one in found if one is not None)


def _small_files(report: LayoutReport) -> Advice | None:
    small, partitions = report.small_files, len(report.partitions.each)
    if small.count <= _FEW_FILES or small.count <= partitions or 2 * small.count <= report.files:
        return None
    found = f"{small.count:,} of {report.files:,} files have less than 25 MB"
    return Advice(Topic.SMALL_FILES, found, "compact them with OPTIMIZE, of a partitioned table where they are new")


def _large_files(report: LayoutReport) -> Advice | None:
    large = report.file_sizes.bins[-1]
    if not large.count:
        return None
    do = "write smaller ones, as a change rewrites, and Direct Lake reloads, whole files"
    return Advice(Topic.LARGE_FILES, f"{large.count:,} files have more than 2 GB", do)


def _row_groups(report: LayoutReport) -> Advice | None:
    small = report.row_groups.below(_MILLION)
    if small.count < 2 or 2 * small.total <= report.rows:
        return None
    found = f"{small.count:,} of {report.row_groups.count:,} row groups have less than 1 million rows"
    do = "have OPTIMIZE, and writers, make groups of 1 to 16 million, like parquet.block.row.count.limit = 8000000"
    return Advice(Topic.ROW_GROUPS, found, do)


def _vorder(report: LayoutReport) -> Advice | None:
    if report.vorder.files == report.files:
        return None
    found = f"{report.files - report.vorder.files:,} of {report.files:,} files are not V-Ordered"
    return Advice(
        Topic.VORDER, found, "run OPTIMIZE … VORDER in Fabric, where cold queries gain by it; others can't write it"
    )


def _vectors(report: LayoutReport) -> Advice | None:
    vectors = report.vectors
    if not vectors.much_hidden and vectors.rows_share <= MANY_HIDDEN_PERCENT:
        return None
    found = (
        f"deletion vectors hide {vectors.rows_share:.1f} % of the rows, in {vectors.much_hidden:,} files over 5 %; "
        "Direct Lake loads them all, hidden or not"
    )
    return Advice(Topic.VECTORS, found, "run OPTIMIZE, or REORG TABLE … APPLY (PURGE) for all files with one")


def _partitions(report: LayoutReport) -> Advice | None:
    count = len(report.partitions.each)
    if not report.partitions.columns or count <= _MOST_PARTITIONS:
        return None
    do = "partition by a coarser key, of less than 100 to 200 values, or not at all"
    return Advice(Topic.PARTITIONS, f"{count:,} partitions keep files small", do)


def _dropped(report: LayoutReport) -> Advice | None:
    size = report.dropped_bytes
    if 100 * size <= _MUCH_DROPPED_PERCENT * report.bytes:
        return None
    found = f"{size:,} bytes belong to columns that the table has no more"
    return Advice(Topic.DROPPED, found, "run REORG TABLE … APPLY (PURGE), then VACUUM")


def _dictionaries(report: LayoutReport) -> Advice | None:
    large = [
        column.label
        for column in report.columns
        if column.share >= _LARGE_COLUMN_PERCENT and column.without_dictionary_share > 50 and not column.is_dropped
        if column.parquet.physical_types != ("BOOLEAN",)  # two values need no dictionary
    ]
    if not large:
        return None
    found = f"{', '.join(large)}: mostly without dictionaries, as of too many different values"
    do = "round them, split date from time, or leave out of the model what nobody groups by"
    return Advice(Topic.DICTIONARIES, found, do)


_RULES: tuple[Callable[[LayoutReport], Advice | None], ...] = (
    _small_files,
    _row_groups,
    _vorder,
    _vectors,
    _dictionaries,
    _partitions,
    _dropped,
    _large_files,
)
# What counts files is about the capacity's limits and the time to open them, however small they are.
_OF_ANY_TABLE = (_small_files, _partitions)
