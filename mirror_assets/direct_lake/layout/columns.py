"""What each column takes in the files, and how it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.footers.columns import ParquetColumn
from mirror_assets.direct_lake.footers.facts import Coding
from mirror_assets.direct_lake.footers.mapping import ColumnNames


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
        without = codings.get(Coding.MIXED, 0) + codings.get(Coding.PLAIN, 0)
        return percent(without, sum(codings.values()))


def column_layouts(columns: Sequence[ParquetColumn], names: ColumnNames) -> tuple[ColumnLayout, ...]:
    """The columns, the largest first."""
    total = sum(column.compressed for column in columns)
    layouts = (
        ColumnLayout(
            name=names.column(column.path),
            label=names.label(column.path),
            is_dropped=names.is_dropped(column.path),
            share=percent(column.compressed, total),
            parquet=column,
        )
        for column in columns
    )
    return tuple(sorted(layouts, key=lambda layout: -layout.parquet.compressed))


def percent(part: int, whole: int) -> float:
    """The part of 100; 0 of nothing."""
    return 100 * part / whole if whole else 0.0
