"""Questions about columns: bytes to load, floats that hardly repeat, and partitioning by one (seed 003)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import ceil

from mirror_assets.direct_lake.footers.facts import Coding
from mirror_assets.direct_lake.footers.parquet_columns import Bounds, ColumnNames, ParquetColumn
from mirror_assets.direct_lake.guardrails.capacity_fit import Verdict
from mirror_assets.direct_lake.guardrails.skus import Sku
from mirror_assets.direct_lake.table_layout import ColumnLayout, LayoutReport, percent

_FLOATS = {"FLOAT", "DOUBLE"}
# So many of 100 values of a row group differ.
_NEARLY_UNIQUE_PERCENT = 50.0
# Beyond so many, a partition column does more harm than good (reference `direct-lake` §4).
_MOST_PARTITIONS = 200
# What OPTIMIZE fills a file to.
_FILE_BYTES = 1 << 30
_DAY_US = 86_400_000_000
_VALUES_OF_TYPES = {"boolean": 2, "tinyint": 1 << 8, "smallint": 1 << 16}

Figure = int | float | str


@dataclass(frozen=True)
class Answer:
    """A row of the report: the question, the column, version or key that it is about, and the answer.

    `advice` is what to do about it; empty when nothing is to be done.
    """

    question: str
    subject: str
    found: str
    advice: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True)
class ColumnBytes:
    """A column of the table, and its compressed bytes over all files.

    Partition columns take none, unless their writer puts them into files, too, as Spark does with column mapping.
    """

    column: str
    compressed: int


@dataclass(frozen=True)
class Loading:
    """The columns that a model uses, and the others, the largest first."""

    used: tuple[ColumnBytes, ...]
    unused: tuple[ColumnBytes, ...]

    @property
    def used_bytes(self) -> int:
        """Compressed bytes that loading the columns reads; row groups are loaded whole, hidden rows included."""
        return sum(column.compressed for column in self.used)

    def answers(self) -> tuple[Answer, ...]:
        """Return a row for what is loaded, and one per column that is not used."""
        unused_bytes = sum(column.compressed for column in self.unused)
        whole = self.used_bytes + unused_bytes
        share = percent(self.used_bytes, whole)
        loaded = f"{len(self.used)} columns load {self.used_bytes:,} bytes, {share:.0f} % of all"
        figures = {"used_bytes": self.used_bytes, "unused_bytes": unused_bytes, "used_bytes_share": share}
        names = ", ".join(column.column for column in self.used)
        return (
            Answer("bytes to load", names, loaded, figures=figures),
            *(
                Answer(
                    "unused columns",
                    column.column,
                    f"{column.compressed:,} bytes, {percent(column.compressed, whole):.0f} % of all, are never loaded",
                    "drop it if nobody else reads it",
                    {"bytes": column.compressed},
                )
                for column in self.unused
            ),
        )


def loading(columns: Sequence[ColumnLayout], names: ColumnNames, used: Sequence[str]) -> Loading:
    """Add up what loading the used columns takes. Raises SettingError for an unknown column."""
    names.require(used)
    sizes = {field.name: 0 for field in names.schema.fields}
    for column in columns:
        if column.name is not None:
            sizes[column.name] += column.parquet.compressed
    ordered = [ColumnBytes(name, size) for name, size in sorted(sizes.items(), key=lambda item: -item[1])]
    return Loading(
        used=tuple(size for size in ordered if size.column in used),
        unused=tuple(size for size in ordered if size.column not in used),
    )


class Repeats(str, Enum):
    """Whether the values of a column repeat within its row groups."""

    OFTEN = "often"
    HARDLY = "hardly"
    UNKNOWN = "unknown"  # the writer made no dictionaries, or they were not read


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
        """Return the row of the report."""
        figures: dict[str, Figure] = {"bytes": self.compressed, "repeats": self.repeats.value}
        how_many = "no dictionaries tell how many values differ"
        if self.different_percent is not None:
            how_many = f"{self.different_percent:.0f} of 100 values in a row group differ"
        advice = "round it, or store it as DECIMAL(17,4)" if self.repeats is Repeats.HARDLY else ""
        found = f"{self.share:.0f} % of all bytes; {how_many}"
        return Answer("nearly unique floats", self.label, found, advice, figures)


def float_columns(report: LayoutReport) -> tuple[FloatColumn, ...]:
    """Return the floating-point columns that the table has, the largest first."""
    plain_tells = _gives_dictionaries_up(report)
    return tuple(
        FloatColumn(
            label=column.label,
            different_percent=_different_percent(column.parquet, plain_tells=plain_tells),
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
    unknown = {Coding.UNKNOWN} if plain_tells else {Coding.UNKNOWN, Coding.PLAIN}
    if column.bounds is None or unknown.intersection(column.codings):
        return None
    shown = column.values - (column.nulls or 0)
    return 100 * column.bounds.most / shown if shown else 0.0


@dataclass(frozen=True)
class Candidate:
    """A table partitioned by a column: the least and the most partitions, and files once each is compacted.

    By the values of all stored rows, hidden ones included. None for a nested column, by which nothing is partitioned,
    and when dictionaries were not read. Every load that spreads over partitions adds a file to each.
    """

    column: str
    partitions: Bounds | None
    files: Bounds | None

    def verdict(self, sku: Sku) -> Verdict:
        """Compare the compacted files with the capacity's limit."""
        if self.files is None:
            return Verdict.UNSURE
        if self.files.least > sku.files:
            return Verdict.OVER
        return Verdict.FITS if self.files.most <= sku.files else Verdict.UNSURE

    def answer(self, sku: Sku) -> Answer:
        """Return the row of the report."""
        question = f"files if partitioned, {sku.name}"
        if self.partitions is None or self.files is None:
            return Answer(question, self.column, "not known: it is nested, or dictionaries were not looked at")
        verdict = self.verdict(sku)
        found = f"{_words(self.partitions)} partitions, {_words(self.files)} files of {sku.files:,}: {verdict.value}"
        too_many = self.partitions.least > _MOST_PARTITIONS or verdict is Verdict.OVER
        advice = "take a coarser key, of less than 100 to 200 values, or none" if too_many else ""
        figures = {"least_files": self.files.least, "most_files": self.files.most, "verdict": verdict.value}
        return Answer(question, self.column, found, advice, figures)


def candidate(report: LayoutReport, names: ColumnNames, column: str) -> Candidate:
    """Predict the report's table partitioned by the column. Raises SettingError for an unknown column."""
    names.require([column])
    partitions = _different_values(report, names, column)
    if partitions is None:
        return Candidate(column, None, None)
    whole_files = ceil(report.bytes / _FILE_BYTES)
    # Each partition ends in a file that is not full.
    files = Bounds(max(partitions.least, whole_files), partitions.most + whole_files)
    return Candidate(column, partitions, files)


def _different_values(report: LayoutReport, names: ColumnNames, column: str) -> Bounds | None:
    """How many different values, a null among them, the column has in the stored rows."""
    if column in report.partitions.columns:
        count = len({dict(one.values)[column] for one in report.partitions.each})
        return Bounds(count, count)
    field = names.schema.field(column)
    if field is None or field.is_nested:
        return None
    found = next((one.parquet for one in report.columns if one.name == column), None)
    if found is None:  # written before the column came: nulls alone
        return Bounds(min(report.rows, 1), min(report.rows, 1))
    if found.bounds is None:
        return None
    most = min(found.bounds.most, _most_of_type(found, field.type, otherwise=found.bounds.most))
    has_nulls = found.nulls is None or report.rows - found.values + found.nulls > 0
    surely_nulls = found.nulls is not None and has_nulls
    return Bounds(found.bounds.least + surely_nulls, most + has_nulls)


def _most_of_type(found: ParquetColumn, column_type: str, *, otherwise: int) -> int:
    """How many values the type has; dates, between the first and the last one."""
    if column_type == "date" and found.least_us is not None and found.most_us is not None:
        return (found.most_us - found.least_us) // _DAY_US + 1
    return _VALUES_OF_TYPES.get(column_type, otherwise)


def _words(bounds: Bounds) -> str:
    return f"{bounds.least:,}" if bounds.least == bounds.most else f"{bounds.least:,} to {bounds.most:,}"
