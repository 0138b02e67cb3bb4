"""How many rows are left when a table keeps its newest months only (seed: data volume, less history)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow.compute as pc

from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.footers.mapping import ColumnNames
from mirror_assets.direct_lake.questions.answer import Answer, Figure
from mirror_assets.direct_lake.questions.errors import NotADate
from mirror_assets.direct_lake.questions.months import days_of, months_before
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot

_TIMES = ("date", "timestamp", "timestamp_ntz")
_EPOCH = date(1970, 1, 1)
_DAY_US = 86_400_000_000

# A number of rows, and whether they stay; None: some may.
_Piece = tuple[int, bool | None]


@dataclass(frozen=True)
class Kept:
    """The rows of a table from the day `since` on.

    Of `undecided` rows, files and row groups don't tell on which side they are. Rows without a date go. All are stored
    rows, of which deletion vectors hide `hidden`.
    """

    column: str
    since: date
    kept: int
    gone: int
    undecided: int
    hidden: int

    def answer(self, months: int) -> Answer:
        """The row of the report."""
        rows = self.kept + self.gone + self.undecided
        left = f"{self.kept:,}"
        if self.undecided:
            left += f" to {self.kept + self.undecided:,}"
        figures: dict[str, Figure] = {"least_rows": self.kept, "most_rows": self.kept + self.undecided}
        found = f"{left} of {rows:,} rows are from {self.since} or later"
        return Answer(
            f"rows of the newest months, {months}", self.column, found, figures=figures | {"since": str(self.since)}
        )


def rows_kept(snapshot: Snapshot, footers: Footers, column: str, months: int, today: date) -> Kept:
    """The rows of the last months, by a partition column that is a date, or by the bounds of a date or timestamp.

    `footers` are those of the version's files, in their order. Raises ColumnUnknown, NotADate.
    """
    names, since = ColumnNames.of(snapshot.metadata), months_before(today, months)
    names.require([column])
    if column in snapshot.metadata.partition_columns:
        pieces = list(_by_partition(snapshot.files, footers, column, since))
    else:
        pieces = list(_by_bounds(footers, names, column, since))
    kept, gone, undecided = (sum(rows for rows, stays in pieces if stays is side) for side in (True, False, None))
    hidden = sum(file.vector.rows for file in snapshot.files if file.vector)
    return Kept(column, since, kept, gone, undecided, hidden)


def _by_partition(files: Sequence[LiveFile], footers: Footers, column: str, since: date) -> Iterator[_Piece]:
    """Whole files, by the days that their partition stands for; one without a day goes."""
    for file, facts in zip(files, footers.files, strict=True):
        value = file.partition.get(column)
        try:
            days = None if value is None else days_of(value)
        except ValueError as error:
            raise NotADate(column, str(error)) from error
        stays = days is not None and _stays(days[0].toordinal(), days[1].toordinal() + 1, since.toordinal())
        yield facts.rows, stays


def _by_bounds(footers: Footers, names: ColumnNames, column: str, since: date) -> Iterator[_Piece]:
    """Row groups, by the least and the largest value of each; nulls go, as do rows of files without the column."""
    field = names.schema.field(column)
    if field is None or field.type not in _TIMES:
        raise NotADate(column, f"its type is {'unknown' if field is None else field.type}")
    chunks = footers.chunks.filter(pc.equal(footers.chunks["column"], field.physical_name or field.name))
    since_us = (since - _EPOCH).days * _DAY_US
    told = zip(*(chunks[name].to_pylist() for name in ("values", "nulls", "least_us", "most_us")), strict=True)
    with_column = 0
    for values, nulls, least_us, most_us in told:
        with_column += values
        yield nulls or 0, False
        is_told = nulls is not None and least_us is not None
        yield values - (nulls or 0), _stays(least_us, most_us + 1, since_us) if is_told else None
    yield sum(file.rows for file in footers.files) - with_column, False


def _stays(first: int, end: int, since: int) -> bool | None:
    """Whether what lies in [first, end) is kept: all of it, nothing, or (None) perhaps a part."""
    if first >= since:
        return True
    return False if end <= since else None
