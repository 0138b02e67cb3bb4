"""Prints a report for people, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.cli.direct_lake.show_parts import known, moment, number, show_framing, show_guardrails, show_vacuum
from mirror_assets.cli.output import show_line, show_records, show_text
from mirror_assets.direct_lake.guardrails.skus import Mode, Sku
from mirror_assets.direct_lake.maintenance.plan_values import script
from mirror_assets.direct_lake.table_layout import Bin, ColumnLayout, Histogram, LayoutReport, Partitions
from mirror_assets.direct_lake.table_report import DirectLakeReport

# Most columns that are printed, the largest first; --json has all.
_COLUMNS = 30


def show_report(report: DirectLakeReport, sku: Sku | None, mode: Mode) -> None:
    """Print all parts of the report: what the table is, what was found, and what to do."""
    _show_table(report)
    show_guardrails(report.guardrails, sku, mode)
    _show_histogram("Files by bytes", report.layout.file_sizes)
    _show_histogram("Row groups by rows", report.layout.row_groups)
    _show_columns(report.layout)
    show_vacuum(report.vacuum, report.name)
    _show_types(report)
    _show_answers(report)
    show_framing(report.framing, report.reframing)
    _show_advice(report)
    show_text("Maintenance", script(report.maintenance))


def _show_table(report: DirectLakeReport) -> None:
    layout, figures = report.layout, report.guardrails.table.figures
    rows = [
        ("version", f"{report.version} of {moment(report.timestamp_ms / 1000)}"),
        ("files", f"{figures.files:,}, {figures.bytes:,} bytes"),
        ("row groups", known(figures.row_groups)),
        ("rows", f"{known(figures.rows)}, and {known(figures.hidden_rows)} hidden by deletion vectors"),
        ("partitions", _partitions(layout.partitions)),
        ("written by", ", ".join(f"{name} ({files:,} files)" for name, files in layout.writers.items())),
        ("V-Ordered", f"{layout.vorder.files:,} files, {layout.vorder.rows_share:.0f} % of the rows"),
        ("bytes of dropped columns", f"{layout.dropped_bytes:,}"),
        ("growth per day", _growth(report)),
    ]
    show_records(report.name, ("", "found"), rows)


def _partitions(found: Partitions) -> str:
    if not found.columns or not found.each:
        return "not partitioned" if not found.columns else "none yet"
    files = [one.files for one in found.each]
    skew = "" if found.skew is None else f"; the largest has {found.skew:,.1f} times the median's bytes"
    return f"{len(files):,} by {', '.join(found.columns)}, of {min(files):,} to {max(files):,} files{skew}"


def _growth(report: DirectLakeReport) -> str:
    growth = report.guardrails.table.figures.growth
    if growth is None:
        return "not known: the log tells of less than an hour"
    rows, size = (number(value) or "an unknown number of" for value in (growth.rows, growth.bytes))
    return (
        f"{growth.files:,.1f} files, {rows} rows, {size} bytes, by {growth.commits:,} commits in {growth.days:.1f} days"
    )


def _show_histogram(title: str, histogram: Histogram) -> None:
    rows = [(_bounds(one), f"{one.count:,}", f"{one.total:,}") for one in histogram.bins]
    show_records(title, ("from, to below", "how many", "together"), rows)


def _bounds(one: Bin) -> str:
    return f"{one.least:,} and more" if one.below is None else f"{one.least:,} to {one.below:,}"


def _show_columns(layout: LayoutReport) -> None:
    rows = [_column(column) for column in layout.columns[:_COLUMNS]]
    if not rows:
        return
    names = ("column", "bytes", "% of all", "% of chunks without dictionary", "different values", "")
    show_records("Columns", names, rows)
    if len(layout.columns) > _COLUMNS:
        show_line(f"… and {len(layout.columns) - _COLUMNS:,} smaller ones; --json has all.")


def _column(column: ColumnLayout) -> tuple[str, ...]:
    bounds = column.parquet.bounds
    return (
        column.label,
        f"{column.parquet.compressed:,}",
        f"{column.share:.1f}",
        f"{column.without_dictionary_share:.0f}",
        f"{bounds.least:,} to {bounds.most:,}" if bounds else "not known",
        "dropped" if column.is_dropped else "",
    )


def _show_types(report: DirectLakeReport) -> None:
    rows = [(one.column, one.type, one.weight.value, one.message) for one in report.types]
    _show_if_any("What Direct Lake can't load, or may not", ("column", "type", "", "why"), rows)
    statements = [f"{one.statement};" for one in report.types if one.statement]
    if statements:
        show_text("To find out", "\n".join(statements))


def _show_answers(report: DirectLakeReport) -> None:
    rows = [(one.question, one.subject, one.found, one.advice) for one in report.answers]
    _show_if_any("Questions", ("question", "about", "found", "advice"), rows)


def _show_advice(report: DirectLakeReport) -> None:
    rows = [(one.topic.value, one.found, one.do) for one in report.advice]
    _show_if_any("Advice", ("about", "found", "do"), rows)
    if report.writers:
        show_text("Settings for writers", "\n".join(f"-- {one.effect}\n{one.statement}" for one in report.writers))


def _show_if_any(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    if rows:
        show_records(title, columns, rows)
