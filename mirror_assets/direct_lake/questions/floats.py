"""Floating-point columns whose values hardly repeat, so that nothing compresses them (seed: column data types)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from mirror_assets.direct_lake.footers.columns import ParquetColumn
from mirror_assets.direct_lake.footers.facts import Coding
from mirror_assets.direct_lake.layout.columns import ColumnLayout
from mirror_assets.direct_lake.questions.answer import Answer

_FLOATS = {"FLOAT", "DOUBLE"}
# So many of 100 values of a row group differ.
_NEARLY_UNIQUE_PERCENT = 50.0


class Repeats(str, Enum):
    """Whether the values of a column repeat within its row groups."""

    OFTEN = "often"
    HARDLY = "hardly"
    UNKNOWN = "unknown"  # the writer made no dictionaries, or they were not looked at


@dataclass(frozen=True)
class FloatColumn:
    """A floating-point column; `different_percent` are different values per 100 of a row group, where known."""

    label: str
    repeats: Repeats
    different_percent: float | None
    compressed: int
    share: float

    def answer(self) -> Answer:
        """The row of the report."""
        figures: dict[str, int | float | str] = {"bytes": self.compressed, "repeats": self.repeats.value}
        if self.repeats is Repeats.UNKNOWN:
            return Answer(
                "nearly unique floats", self.label, "no dictionaries tell how many values differ", "", figures
            )
        many = (
            f"{self.different_percent:.0f} of 100 values in a row group differ"
            if self.different_percent
            else "no values"
        )
        advice = "round it, or store it as DECIMAL(17,4)" if self.repeats is Repeats.HARDLY else ""
        return Answer("nearly unique floats", self.label, f"{many}; {self.share:.0f} % of all bytes", advice, figures)


def float_columns(columns: Sequence[ColumnLayout]) -> tuple[FloatColumn, ...]:
    """The floating-point columns that the table has, the largest first."""
    return tuple(_floats(columns))


def _floats(columns: Sequence[ColumnLayout]) -> Iterator[FloatColumn]:
    for column in columns:
        if column.name is not None and _FLOATS.intersection(column.parquet.physical_types):
            different = _different_percent(column.parquet)
            yield FloatColumn(
                label=column.label,
                repeats=_repeats(different),
                different_percent=different,
                compressed=column.parquet.compressed,
                share=column.share,
            )


def _repeats(different: float | None) -> Repeats:
    if different is None:
        return Repeats.UNKNOWN
    return Repeats.HARDLY if different >= _NEARLY_UNIQUE_PERCENT else Repeats.OFTEN


def _different_percent(column: ParquetColumn) -> float | None:
    """By the dictionaries; a chunk whose dictionary grew too large counts as one of different values.

    A chunk without any dictionary says nothing: Spark gives one up that doesn't pay, delta-rs makes none when told so.
    """
    if column.bounds is None or column.codings.get(Coding.PLAIN) or column.codings.get(Coding.UNKNOWN):
        return None
    shown = column.values - (column.nulls or 0)
    return 100 * column.bounds.most / shown if shown else 0.0
