"""The direct-lake commands: open the table, inspect it, print the result, as JSON or tables; return the exit code."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import note, show_json, show_line, show_records, show_text
from mirror_assets.config.errors import CONFIG_MISSING, TABLE_UNKNOWN
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.features.direct_lake.consumers import RetentionConsumers, named_frames, source_consumers
from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeMode, DirectLakeSettings, DirectLakeTable
from mirror_assets.features.direct_lake.footers import FooterReader
from mirror_assets.features.direct_lake.framing import FramingEffect
from mirror_assets.features.direct_lake.guardrails import (
    MODE_NAMES,
    SOURCE,
    SOURCE_DATE,
    FitVerdict,
    LimitUse,
    Sku,
    TableSize,
    consequence,
    fit,
    predicted_mirror,
    sku_of,
)
from mirror_assets.features.direct_lake.layout import LayoutReport
from mirror_assets.features.direct_lake.report import DirectLakeReport, InspectedTable, table_report
from mirror_assets.features.direct_lake.vacuum import NeededFile, VacuumPlan, hours, hours_at_least, plan_vacuum
from mirror_assets.lakes.access import access_to
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets.process import user_cache
from mirror_assets.source.log import DeltaLog
from mirror_assets.spark_names import quoted


@dataclass(frozen=True)
class Inspection:
    """A direct-lake command's table and options; options that the command doesn't have keep their defaults."""

    table: str
    config: Path | None = None
    frame: tuple[str, ...] = ()
    export: tuple[Path, ...] = ()
    retain_hours: float | None = None
    sku: Sku | None = None
    mode: str | None = None
    fabric: str | None = None
    cache: Path | None = None
    no_cache: bool = False

    def report(self, *, as_json: bool) -> Exit:
        """Print the whole report; fail if the table exceeds a limit of the capacity."""
        own = DirectLakeTable.of(self._configured[1]).direct_lake if self._configured else DirectLakeSettings()
        sku = self.sku or (sku_of(own.sku) if own.sku else None)
        mode = DirectLakeMode(self.mode.replace("-", "_")) if self.mode else own.mode
        log, cache = self._log, None if self.no_cache else self.cache or user_cache() / "footers"
        found = table_report(
            InspectedTable(self.table, log, FooterReader(log.uri, log.files, cache), time.time()),
            self._consumers(),
            retain_hours=self.retain_hours,
            fabric_name=self.fabric and ".".join(map(quoted, self.fabric.split("."))),
            max_files=sku.files if sku else None,
        )
        if as_json:
            shown = {"guardrails": _guardrails(found.size, sku, mode), "vacuum": _vacuum(found.vacuum)}
            show_json([{name: value for name, value in vars(found).items() if name != "size"} | shown])
        else:
            show_report(found, sku, mode)
        is_over = sku is not None and fit(sku, found.size).verdict is FitVerdict.OVER
        return Exit.FAILED if is_over else Exit.FINE

    def vacuum_plan(self, *, as_json: bool) -> Exit:
        """Print what VACUUM would delete; fail if a reader needs one of the files. Deletes nothing."""
        plan = plan_vacuum(self._log, time.time(), *self._consumers(), self.retain_hours)
        if as_json:
            show_json([_vacuum(plan)])
        else:
            show_vacuum(plan, self.table)
        return Exit.FINE if plan.is_safe else Exit.FAILED

    @cached_property
    def _configured(self) -> tuple[Config, TableSettings] | None:
        """The table in mirror.yaml; None if it is named by its address. Raises what reading mirror.yaml raises."""
        if "/" in self.table or self.table.startswith("."):  # names in mirror.yaml have no slash, and no dot first
            return None
        try:
            config = load_config(self.config)
            return config, config.table(self.table)
        except (CONFIG_MISSING.error, TABLE_UNKNOWN.error):
            if Path(self.table).is_dir():
                note(f"{self.table} is taken for a name of mirror.yaml; for the folder, write ./{self.table}")
            raise

    @cached_property
    def _log(self) -> DeltaLog:
        if self._configured is not None:
            config, settings = self._configured
            return _readable(DeltaLog.at(config.locate(settings.source)))
        address = str(Path(self.table).absolute())  # statements may be run in another folder
        if urlsplit(self.table).scheme:
            try:
                address = LakeAddress.parse(self.table).uri
            except ValueError:
                address = self.table  # opening it raises an error with the reason
        return _readable(DeltaLog(address, access_to(address, ())))

    def _consumers(self) -> RetentionConsumers:
        """Return the frames of command line and settings, and the mirror. Raises FRAME_REFUSED, FRAMES_UNREADABLE."""
        name = str(self._configured[1].name) if self._configured else self._log.uri.rstrip("/").rpartition("/")[2]
        named = named_frames(self._log, self.frame, self.export, name)
        if self._configured is None:
            return RetentionConsumers(named)
        from mirror_assets.composition import compose  # a table that is named by its address needs no landing zone

        config, settings = self._configured
        manifest = compose(config).table(settings).manifest()
        known = source_consumers(config, settings, self._log, manifest)
        return RetentionConsumers((*named, *known.frames), known.mirror)


def _readable(log: DeltaLog) -> DeltaLog:
    """Return the log. Raises what all commands raise for a source that can't be read."""
    log.state()
    return log


def _vacuum(plan: VacuumPlan) -> dict[str, object]:
    return {"is_safe": plan.is_safe, "deleted_bytes": plan.deleted_bytes, "plan": plan}


def _guardrails(size: TableSize, sku: Sku | None, mode: DirectLakeMode) -> dict[str, object]:
    """Return the guardrails of the capacity, or of all, and the source of their limits."""

    def fitting(one: TableSize) -> dict[str, object]:
        fits = one.fits if sku is None else (fit(sku, one),)
        return {
            "size": one,
            "smallest": one.smallest.name if one.smallest else None,
            "fits": [{"sku": x.sku.name, "verdict": x.verdict, "days_left": x.days_left, "uses": x.uses} for x in fits],
        }

    table, mirror = fitting(size), fitting(predicted_mirror(size))
    return {"source": SOURCE, "source_date": SOURCE_DATE, "mode": MODE_NAMES[mode], "table": table, "mirror": mirror}


_USE_COLUMNS = ("of", "limit", "used", "allowed", "% free", "days left", "verdict")
_FIT_COLUMNS = ("capacity", "verdict", "tightest limit", "used", "allowed", "days left", "mirror, predicted")
_EFFECT_COLUMNS = ("framed at", "after", "rows kept", "other deletion vector", "to load", "% to load", "bytes to load")
# --json has all files and columns.
_MOST_FILES, _MOST_COLUMNS = 20, 30


def show_report(report: DirectLakeReport, sku: Sku | None, mode: DirectLakeMode) -> None:
    """Print all parts of the report: numbers, findings and advice."""
    layout = report.layout
    show_records(report.name, ("", "found"), list(_table_facts(report)))
    show_guardrails(report.size, sku, mode)
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
    _show_if_any("Frames, refreshed now", _EFFECT_COLUMNS, [_effect(effect) for effect in report.reframing])
    _show_if_any("Advice", ("about", "found", "do"), [(one.topic.value, one.found, one.do) for one in report.advice])
    show_text("Maintenance", report.script)


def _table_facts(report: DirectLakeReport) -> Iterator[tuple[str, str]]:
    layout, size = report.layout, report.size
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


def show_guardrails(table: TableSize, sku: Sku | None, mode: DirectLakeMode) -> None:
    """Print the limits of the capacity and the consequence of exceeding one; without a capacity, print all."""
    mirror = predicted_mirror(table)
    if sku is None:
        rows: list[tuple[str, ...]] = []
        for one, of_mirror in zip(table.fits, mirror.fits, strict=True):
            tightest = one.tightest
            shown = (tightest.limit.value, _number(tightest.used), _number(tightest.allowed)) if tightest else ("",) * 3
            days = _number(one.days_left, 1)
            rows.append(("/".join(one.sku.names), one.verdict.value, *shown, days, of_mirror.verdict.value))
        show_records(f"Guardrails of {table.table}", _FIT_COLUMNS, rows)
    else:
        uses = fit(sku, table).uses
        rows = [_use_row("table", use) for use in uses]
        rows += [_use_row("mirror, predicted", use) for use in fit(sku, mirror).uses]
        title = f"Guardrails of {'/'.join(sku.names)}, {MODE_NAMES[mode]}: {table.table}"
        show_records(title, _USE_COLUMNS, rows)
        for use in uses:
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
            "dropped" if column.is_dropped else "",
        )
        for column in layout.columns[:_MOST_COLUMNS]
    ]
    names = ("column", "bytes", "% of all", "% of chunks without dictionary", "")
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
