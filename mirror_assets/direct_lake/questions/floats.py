"""Floating-point columns whose values hardly repeat, so that nothing compresses them (seed: column data types)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mirror_assets.direct_lake.footers.columns import ParquetColumn
from mirror_assets.direct_lake.footers.facts import Coding
from mirror_assets.direct_lake.layout.report import LayoutReport
from mirror_assets.direct_lake.questions.answer import Answer, Figure

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
    """A floating-point column; `different_percent` are different values per 100 of a row group, None when unknown."""

    label: str
    different_percent: float | None
    compressed: int
    share: float

    @property
    def repeats(self) -> Repeats:
        """Whether its values repeat."""
        if self.different_percent is None:
            return Repeats.UNKNOWN
        return Repeats.HARDLY if self.different_percent >= _NEARLY_UNIQUE_PERCENT else Repeats.OFTEN

    def answer(self) -> Answer:
        """The row of the report."""
        figures: dict[str, Figure] = {"bytes": self.compressed, "repeats": self.repeats.value}
        found = f"{self.share:.0f} % of all bytes; no dictionaries tell how many values differ"
        if self.different_percent is not None:
            found = f"{self.share:.0f} % of all bytes; {self.different_percent:.0f} of 100 values in a row group differ"
        advice = "round it, or store it as DECIMAL(17,4)" if self.repeats is Repeats.HARDLY else ""
        return Answer("nearly unique floats", self.label, found, advice, figures)


def float_columns(report: LayoutReport) -> tuple[FloatColumn, ...]:
    """The floating-point columns that the table has, the largest first."""
    gives_up = _gives_dictionaries_up(report)
    return tuple(
        FloatColumn(
            label=column.label,
            different_percent=_different_percent(column.parquet, plain_tells=gives_up),
            compressed=column.parquet.compressed,
            share=column.share,
        )
        for column in report.columns
        if column.name is not None and _FLOATS.intersection(column.parquet.physical_types)
    )


def _gives_dictionaries_up(report: LayoutReport) -> bool:
    """Whether a column without a dictionary is one of different values.

    Spark's writer, parquet-mr, keeps no dictionary that is no shorter than the values on the first page. Others keep
    what they have of it, so that without one they were told to make none; as parquet-mr was if no column has any.
    """
    made = any(coding is not Coding.PLAIN for column in report.columns for coding in column.parquet.codings)
    return made and all(writer.startswith("parquet-mr") for writer in report.writers)


def _different_percent(column: ParquetColumn, *, plain_tells: bool) -> float | None:
    """By the dictionaries; the values of a row group whose dictionary grew too large count as different."""
    untold = {Coding.UNKNOWN} if plain_tells else {Coding.UNKNOWN, Coding.PLAIN}
    if column.bounds is None or untold.intersection(column.codings):
        return None
    shown = column.values - (column.nulls or 0)
    return 100 * column.bounds.most / shown if shown else 0.0
