"""Questions about rows: how many the newest months have, and which partitions commits touch (seed 003)."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date

import pyarrow.compute as pc

from mirror_assets.direct_lake.column_questions import Answer, Figure
from mirror_assets.direct_lake.errors import not_a_date
from mirror_assets.direct_lake.footers.facts import Footers
from mirror_assets.direct_lake.footers.parquet_columns import ColumnNames
from mirror_assets.direct_lake.table.known import files_by_path
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.values import LiveFile, LoggedCommit, Snapshot

# A year, with a month, with a day; after a day, the time of a timestamp.
_VALUE = re.compile(r"(\d{4})(?:-?(\d{2})(?:-?(\d{2})(?:[ T].*)?)?)?")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_EPOCH = date(1970, 1, 1)
_DAY_US = 86_400_000_000

# A number of rows, and whether they stay; None: some may.
_Piece = tuple[int, bool | None]


@dataclass(frozen=True)
class RowsKept:
    """The rows of a table from the day `since` on.

    Of `undecided` rows, files and row groups don't tell on which side they are. Rows without a date go. All are stored
    rows, hidden ones included.
    """

    column: str
    since: date
    kept: int
    gone: int
    undecided: int

    def answer(self, months: int) -> Answer:
        """Return the row of the report."""
        rows = self.kept + self.gone + self.undecided
        left = f"{self.kept:,}"
        if self.undecided:
            left += f" to {self.kept + self.undecided:,}"
        figures: dict[str, Figure] = {"least_rows": self.kept, "most_rows": self.kept + self.undecided}
        found = f"{left} of {rows:,} rows are from {self.since} or later"
        return Answer(
            f"rows of the newest months, {months}", self.column, found, figures=figures | {"since": str(self.since)}
        )


def rows_kept(snapshot: Snapshot, footers: Footers, column: str, months: int, today: date) -> RowsKept:
    """Count the rows of the last months, by a partition column that is a date, or by the bounds of a date or timestamp.

    `footers` are those of the version's files, in their order. Raises SettingError for a column that is
    unknown or no date.
    """
    names, since = ColumnNames.of(snapshot.metadata), months_before(today, months)
    names.require([column])
    if column in snapshot.metadata.partition_columns:
        pieces = list(_by_partition(snapshot.files, footers, column, since))
    else:
        pieces = list(_by_bounds(footers, names, column, since))
    kept, gone, undecided = (sum(rows for rows, stays in pieces if stays is side) for side in (True, False, None))
    return RowsKept(column, since, kept, gone, undecided)


def _by_partition(files: Sequence[LiveFile], footers: Footers, column: str, since: date) -> Iterator[_Piece]:
    """Whole files, by the days that their partition stands for; one without a day goes."""
    for file, facts in zip(files, footers.files, strict=True):
        value = file.partition.get(column)
        try:
            days = None if value is None else days_of(value)
        except ValueError as error:
            raise not_a_date(column, str(error)) from error
        stays = days is not None and _stays(days[0].toordinal(), days[1].toordinal() + 1, since.toordinal())
        yield facts.rows, stays


def _by_bounds(footers: Footers, names: ColumnNames, column: str, since: date) -> Iterator[_Piece]:
    """Row groups, by the least and the largest value of each; nulls go, as do rows of files without the column."""
    field = names.schema.field(column)
    if field is None or field.type not in _TIMES:
        why = f"its type is {'unknown' if field is None else field.type}"
        raise not_a_date(column, why)
    chunks = footers.chunks.filter(pc.equal(footers.chunks["column"], field.physical_name or field.name))
    since_us = (since - _EPOCH).days * _DAY_US
    row_groups = zip(*(chunks[name].to_pylist() for name in ("values", "nulls", "least_us", "most_us")), strict=True)
    with_column = 0
    for values, nulls, least_us, most_us in row_groups:
        with_column += values
        yield nulls or 0, False
        has_bounds = nulls is not None and least_us is not None
        yield values - (nulls or 0), _stays(least_us, most_us + 1, since_us) if has_bounds else None
    yield sum(file.rows for file in footers.files) - with_column, False


def _stays(first: int, end: int, since: int) -> bool | None:
    """Whether what lies in [first, end) is kept: all of it, nothing, or (None) perhaps a part."""
    if first >= since:
        return True
    return False if end <= since else None


def months_before(day: date, months: int) -> date:
    """Return the same day so many months ago, or that month's last one."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def days_of(value: str) -> tuple[date, date]:
    """Return the first and the last day that a partition's value stands for. Raises ValueError for no date."""
    match = _VALUE.fullmatch(value)
    if match is None:
        raise ValueError(f"{value!r} is no date")
    year, month, day = int(match[1]), match[2], match[3]
    if month is None:
        return date(year, 1, 1), date(year, 12, 31)
    first = date(year, int(month), int(day or 1))
    return first, first if day else first.replace(day=monthrange(year, first.month)[1])


Partition = tuple[tuple[str, str | None], ...]
"""A partition's values by the names of columns, in order of the names: writers have them in any order."""


@dataclass(frozen=True)
class Touched:
    """The partitions in which a commit adds or removes files; `unknown` are removed files whose partition is lost."""

    version: int
    operation: str
    partitions: tuple[Partition, ...]
    unknown: int

    def answer(self, live: Set[Partition]) -> Answer:
        """Return the row of the report, for a table that has these partitions now."""
        gone = len(set(self.partitions) - live)
        found = f"{self.operation} touches {len(self.partitions) - gone} of {len(live)} partitions"
        figures: dict[str, Figure] = {"touched": len(self.partitions), "operation": self.operation}
        if gone:
            found += f", and {gone} that {'is' if gone == 1 else 'are'} gone now"
        if self.unknown:
            found += f", and {self.unknown} files whose partition the log tells no more"
        return Answer("partitions touched", f"version {self.version}", found, figures=figures)


def partitions_touched(log: TableLog, commits: Sequence[LoggedCommit]) -> tuple[Touched, ...]:
    """Return what each of consecutive commits touches; a table without partitions has one."""
    known = files_by_path(log, commits, (tomb for commit in commits for tomb in commit.removed))
    return tuple(_touched(commit, known) for commit in commits)


def partition_of(values: Mapping[str, str | None]) -> Partition:
    """Return the partition with these values."""
    return tuple(sorted(values.items()))


def _touched(commit: LoggedCommit, known: Mapping[str, LiveFile]) -> Touched:
    removed = [known.get(tomb.path) for tomb in commit.removed]
    files = [*commit.added, *(file for file in removed if file is not None)]
    partitions = {partition_of(file.partition): None for file in files}
    return Touched(
        version=commit.version,
        operation=commit.operation,
        partitions=tuple(partitions),
        unknown=sum(file is None for file in removed),
    )
