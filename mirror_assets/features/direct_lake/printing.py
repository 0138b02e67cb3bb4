"""Print reports for people, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from mirror_assets.cli.output import show_line, show_records, show_text
from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeMode
from mirror_assets.features.direct_lake.framing import FramingEffect
from mirror_assets.features.direct_lake.guardrails import (
    MODE_NAMES,
    SOURCE,
    SOURCE_DATE,
    FitVerdict,
    Guardrails,
    LimitUse,
    Sku,
    consequence,
)
from mirror_assets.features.direct_lake.layout import LayoutReport
from mirror_assets.features.direct_lake.report import DirectLakeReport
from mirror_assets.features.direct_lake.vacuum import NeededFile, VacuumPlan, hours, hours_at_least

_USE_COLUMNS = ("of", "limit", "used", "allowed", "% free", "days left", "verdict")
_FIT_COLUMNS = ("capacity", "verdict", "tightest limit", "used", "allowed", "days left", "mirror, predicted")
_EFFECT_COLUMNS = ("framed at", "after", "rows kept", "other deletion vector", "to load", "% to load", "bytes to load")
# --json has all files and columns.
_MOST_FILES, _MOST_COLUMNS = 20, 30


def show_report(report: DirectLakeReport, sku: Sku | None, mode: DirectLakeMode) -> None:
    """Print all parts of the report: numbers, findings and advice."""
    layout = report.layout
    show_records(report.name, ("", "found"), list(_table_facts(report)))
    show_guardrails(report.guardrails, sku, mode)
    _show_columns(layout)
    show_vacuum(report.vacuum, report.name)
    _show_if_any(
        "Columns that Direct Lake can't load, or perhaps can't",
        ("column", "type", "", "why"),
        [(one.column, one.type, one.certainty.value, one.message) for one in report.types],
    )
    statements = [f"{one.statement};" for one in report.types if one.statement]
    if statements:
        show_text("Queries that decide it", "\n".join(statements))
    _show_if_any(
        "Use of columns",
        ("question", "column", "found", "advice"),
        [(one.question, one.column, one.found, one.advice) for one in report.answers],
    )
    _show_if_any(
        "Framed once a day",
        (*_EFFECT_COLUMNS, "committed", "maintenance"),
        [
            (*_effect(point.effect), moment(point.timestamp_ms / 1000), ", ".join(dict.fromkeys(point.maintenance)))
            for point in report.framing
        ],
    )
    _show_if_any("Frames, refreshed now", _EFFECT_COLUMNS, [_effect(effect) for effect in report.reframing])
    _show_if_any("Advice", ("about", "found", "do"), [(one.topic.value, one.found, one.do) for one in report.advice])
    show_text("Maintenance", report.script)


def _table_facts(report: DirectLakeReport) -> Iterator[tuple[str, str]]:
    layout, size = report.layout, report.guardrails.table.size
    yield "version", f"{report.version} of {moment(report.timestamp_ms / 1000)}"
    files, groups, partitions = layout.files, layout.row_groups, layout.partitions
    yield (
        "files",
        f"{files.count:,}, {files.total:,} bytes; {files.small:,} below 25 MB, {files.large:,} of 2 GB or more",
    )
    yield "bytes of a file", f"{files.least:,} to {files.most:,}, median {files.middle:,.0f}"
    yield "row groups", f"{groups.count:,}; {groups.small:,} below 1 million rows"
    yield "rows of a row group", f"{groups.least:,} to {groups.most:,}, median {groups.middle:,.0f}"
    yield "rows", f"{size.rows:,}, and {size.hidden_rows:,} hidden by deletion vectors"
    if partitions.columns:
        by, skew = ", ".join(partitions.columns), partitions.skew or 1.0
        of_files = f"of {partitions.least_files:,} to {partitions.most_files:,} files"
        yield (
            "partitions",
            f"{partitions.count:,} by {by}, {of_files}; the largest has {skew:,.1f} times the median's bytes",
        )
    yield "written by", ", ".join(f"{name} ({files:,} files)" for name, files in layout.writers.items())
    yield "V-Ordered", f"{layout.vorder_files:,} files, {layout.vorder_percent:.0f} % of the rows"
    yield "bytes of dropped columns", f"{layout.dropped_bytes:,}"
    growth = size.growth
    if growth is None:
        yield "growth per day", "unknown: the log has less than an hour"
    else:
        rows = _number(growth.rows) or "an unknown number of"
        per_day = f"{growth.files:,.1f} files, {rows} rows, {growth.bytes:,.0f} bytes"
        yield "growth per day", f"{per_day}, by {growth.commits:,} commits in {growth.days:.1f} days"


def show_guardrails(found: Guardrails, sku: Sku | None, mode: DirectLakeMode) -> None:
    """Print the limits of the capacity and the consequence of exceeding one; without a capacity, print all."""
    table, mirror = found.table, found.mirror
    if sku is None:
        rows: list[tuple[str, ...]] = []
        for fit, of_mirror in zip(table.fits, mirror.fits, strict=True):
            tightest = fit.tightest
            shown = (tightest.limit.value, _number(tightest.used), _number(tightest.allowed)) if tightest else ("",) * 3
            days = _number(fit.days_left, 1)
            rows.append(("/".join(fit.sku.names), fit.verdict.value, *shown, days, of_mirror.verdict.value))
        show_records(f"Guardrails of {table.size.table}", _FIT_COLUMNS, rows)
    else:
        fit = table.into(sku)
        rows = [_use_row("table", use) for use in fit.uses]
        rows += [_use_row("mirror, predicted", use) for use in mirror.into(sku).uses]
        title = f"Guardrails of {'/'.join(sku.names)}, {MODE_NAMES[mode]}: {table.size.table}"
        show_records(title, _USE_COLUMNS, rows)
        for use in fit.uses:
            if use.verdict is FitVerdict.OVER:
                show_line(f"{use}: {consequence(mode, use.limit)}.")
    smallest_of = {"The table": table.smallest, "Its mirror, once Fabric has compacted it,": mirror.smallest}
    for subject, smallest in smallest_of.items():
        fits = f"certainly fits into {smallest.name} and larger capacities" if smallest else "may not fit any capacity"
        show_line(f"{subject} {fits}.")
    show_line(f"Limits: {SOURCE}, {SOURCE_DATE}.")


def _use_row(of: str, use: LimitUse) -> tuple[str, ...]:
    """Return the row of one limit; a model is assumed to have no other table."""
    return (
        of if use.table else f"{of}, as a model",
        use.limit.value,
        f"{use.used:,}",
        "unlimited" if use.allowed is None else f"{use.allowed:,}",
        _number(use.headroom_percent, 1),
        _number(use.days_left, 1),
        use.verdict.value,
    )


def show_vacuum(plan: VacuumPlan, name: str) -> None:
    """Print the files that VACUUM would delete, who needs them, and the statement that keeps them."""
    show_records(f"VACUUM of {name} at version {plan.version}", ("", "found"), list(_vacuum_facts(plan)))
    _show_files("Would be deleted, and are needed", plan.threatened)
    _show_files("Are needed, and already missing", plan.lost)
    if plan.gone:
        show_line(f"The log no longer has the files of {', '.join(map(str, plan.gone))}.")
    if plan.statement is not None:
        show_line("To keep needed files, run this before VACUUM:")
        show_line(f"{plan.statement};")
    elif plan.threatened:
        show_line("The table's properties keep needed files: run VACUUM without RETAIN 0 HOURS.")


def _vacuum_facts(plan: VacuumPlan) -> Iterator[tuple[str, str]]:
    yield "effective retention", hours(plan.retention_seconds)
    yield "would be deleted", f"{len(plan.deleted):,} files, {plan.deleted_bytes:,} bytes"
    yield "of these, needed", f"{len(plan.threatened):,} files"
    yield "needed, already missing", f"{len(plan.lost):,} files"
    yield "least safe retention", hours_at_least(plan.min_safe_retention_seconds)
    if plan.unknown_frames:
        yield "safe until", "unknown: the log no longer has the files of a frame"
    else:
        never = "always: VACUUM deletes no needed file"
        yield "safe until", never if plan.safe_until is None else moment(plan.safe_until)
    if plan.resume_until is not None:
        yield "the mirror can continue until", moment(plan.resume_until)
    yield "oldest version in the log", "none" if plan.oldest_in_log is None else str(plan.oldest_in_log)
    yield "oldest needed version", "none" if plan.oldest_needed is None else str(plan.oldest_needed)


def _show_files(title: str, files: Sequence[NeededFile]) -> None:
    rows = [(file.path, ", ".join(map(str, file.needed_by))) for file in files[:_MOST_FILES]]
    _show_if_any(title, ("file", "needed by"), rows)
    if len(files) > _MOST_FILES:
        show_line(f"… and {len(files) - _MOST_FILES:,} more; --json has all.")


def _effect(effect: FramingEffect) -> tuple[str, ...]:
    share = effect.reloaded_share
    rows = (effect.kept.rows, effect.changed.rows, effect.reloaded.rows)
    return (
        f"version {effect.last}",
        f"version {effect.first}",
        *("unknown" if value is None else f"{value:,}" for value in rows),
        "" if share is None else f"{100 * share:.0f}",
        f"{effect.bytes_to_load:,}",
    )


def _show_columns(layout: LayoutReport) -> None:
    rows = [
        (
            column.label,
            f"{column.compressed:,}",
            f"{column.share:.1f}",
            f"{column.without_dictionary_percent:.0f}",
            f"{column.distinct.least:,} to {column.distinct.most:,}" if column.distinct else "unknown",
            "dropped" if column.is_dropped else "",
        )
        for column in layout.columns[:_MOST_COLUMNS]
    ]
    names = ("column", "bytes", "% of all", "% of chunks without dictionary", "different values", "")
    _show_if_any("Columns", names, rows)
    if len(layout.columns) > _MOST_COLUMNS:
        show_line(f"… and {len(layout.columns) - _MOST_COLUMNS:,} smaller ones; --json has all.")


def _show_if_any(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    if rows:
        show_records(title, columns, rows)


def _number(value: float | None, digits: int = 0) -> str:
    """Return the number with thousands separators, or an empty text for None."""
    return "" if value is None else f"{value:,.{digits}f}"


def moment(seconds: float) -> str:
    """Return a time, in seconds since 1970, as UTC."""
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
