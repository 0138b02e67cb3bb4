"""How many files partitioning by a column would make, against a capacity's limit (seed: high cardinality)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from mirror_assets.direct_lake.footers.columns import Bounds, ParquetColumn
from mirror_assets.direct_lake.footers.mapping import ColumnNames
from mirror_assets.direct_lake.guardrails.fit import Verdict
from mirror_assets.direct_lake.guardrails.skus import Sku
from mirror_assets.direct_lake.layout.report import LayoutReport
from mirror_assets.direct_lake.questions.answer import Answer, Figure

# Beyond so many, a partition column does more harm than good (reference `direct-lake` §4).
_MOST_PARTITIONS = 200
# What OPTIMIZE fills a file to.
_FILE_BYTES = 1 << 30
_DAY_US = 86_400_000_000
_VALUES_OF_TYPES = {"boolean": 2, "tinyint": 1 << 8, "smallint": 1 << 16}


@dataclass(frozen=True)
class Candidate:
    """A table partitioned by a column: at least and at most so many partitions, and files once each is compacted.

    By the values of all stored rows, hidden ones included. None for a nested column, by which nothing is partitioned,
    and when dictionaries were not looked at. Every load that spreads over partitions adds a file to each.
    """

    column: str
    partitions: Bounds | None
    files: Bounds | None

    def verdict(self, sku: Sku) -> Verdict:
        """Whether the compacted files are within the capacity's limit."""
        if self.files is None:
            return Verdict.UNSURE
        if self.files.least > sku.files:
            return Verdict.OVER
        return Verdict.FITS if self.files.most <= sku.files else Verdict.UNSURE

    def answer(self, sku: Sku) -> Answer:
        """The row of the report."""
        question = f"files if partitioned, {sku.name}"
        if self.partitions is None or self.files is None:
            return Answer(question, self.column, "not known: it is nested, or dictionaries were not looked at")
        verdict = self.verdict(sku)
        found = f"{_said(self.partitions)} partitions, {_said(self.files)} files of {sku.files:,}: {verdict.value}"
        too_many = self.partitions.least > _MOST_PARTITIONS or verdict is Verdict.OVER
        advice = "take a coarser key, of less than 100 to 200 values, or none" if too_many else ""
        figures: dict[str, Figure] = {"least_files": self.files.least, "most_files": self.files.most}
        return Answer(question, self.column, found, advice, figures | {"verdict": verdict.value})


def candidate(report: LayoutReport, names: ColumnNames, column: str) -> Candidate:
    """The report's table as if it were partitioned by the column. Raises ColumnUnknown."""
    names.require([column])
    partitions = _different(report, names, column)
    if partitions is None:
        return Candidate(column, None, None)
    whole_files = ceil(report.bytes / _FILE_BYTES)
    # Each partition ends in a file that is not full.
    files = Bounds(max(partitions.least, whole_files), partitions.most + whole_files)
    return Candidate(column, partitions, files)


def _different(report: LayoutReport, names: ColumnNames, column: str) -> Bounds | None:
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
    bounds = found.bounds
    most = min(bounds.most, _most_of_type(found, field.type, otherwise=bounds.most))
    has_nulls = found.nulls is None or report.rows - found.values + found.nulls > 0
    surely_nulls = found.nulls is not None and has_nulls
    return Bounds(bounds.least + surely_nulls, most + has_nulls)


def _most_of_type(found: ParquetColumn, column_type: str, *, otherwise: int) -> int:
    """How many values the type has; dates, between the first and the last one."""
    if column_type == "date" and found.least_us is not None and found.most_us is not None:
        return (found.most_us - found.least_us) // _DAY_US + 1
    return _VALUES_OF_TYPES.get(column_type, otherwise)


def _said(bounds: Bounds) -> str:
    return f"{bounds.least:,}" if bounds.least == bounds.most else f"{bounds.least:,} to {bounds.most:,}"
