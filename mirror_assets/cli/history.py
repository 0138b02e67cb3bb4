"""`mirror-assets history`: keeps the change feed of the tables that `history` is set for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from mirror_assets.cli.exit import Exit, exit_code
from mirror_assets.cli.jobs import StepFailed, execute, failures
from mirror_assets.cli.output import note, show_json, show_records
from mirror_assets.config import Config, Problem, TableSettings, load_config
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.orchestration.asset_names import Kind, asset_key
from mirror_assets.orchestration.assets import KeepHistory
from mirror_assets.orchestration.jobs import HISTORY


class SkipOfMany(SettingError):
    """A version to skip to was given for several tables."""

    code = ErrorCode.RANGE_REFUSED

    def __init__(self) -> None:
        super().__init__("--skip-to names a version of one table.", "give that table, and no other, with --table.")


@dataclass(frozen=True)
class HistoryReport:
    """What a run has kept of a table's feed, up to where its history goes, and the error that stopped it, if any."""

    table: str
    slices: int
    rows: int
    covered: int | None
    path: str
    error: str | None = None
    family: str | None = None


def history(path: Path | None, names: Sequence[str], skip_to: int | None, *, as_json: bool) -> Exit:
    """Keep what is not kept yet. A table that fails doesn't hold up the others."""
    config = load_config(path)
    tables = _chosen(config, names)
    if skip_to is not None and len(names) != 1:
        raise SkipOfMany
    keys = {table.name: asset_key(Kind.HISTORY, table.name) for table in tables}
    ops = {_step(key): KeepHistory(skip_to=skip_to) for key in keys.values()}
    result = execute(config, HISTORY, ops, list(keys.values()))
    broken = {failed.step: failed for failed in failures(result)}
    reports = [_report(result, config, table, broken.get(_step(keys[table.name]))) for table in tables]
    if as_json:
        show_json(reports)
    else:
        _show(reports)
    return exit_code([report.family for report in reports if report.family])


def _chosen(config: Config, names: Sequence[str]) -> list[TableSettings]:
    """The tables by name, or all whose history is kept. Raises TableUnknown, and ConfigInvalid for one without."""
    tables = [config.table(name) for name in names] or [t for t in config.all_tables() if t.keeps_history]
    without = [Problem(f"tables.{t.name}.history", "write slices or stream") for t in tables if not t.keeps_history]
    if without or not tables:
        raise config.invalid(
            tuple(without) or (Problem("defaults.history", "no table keeps its history: write slices or stream"),)
        )
    return tables


def _step(key: dg.AssetKey) -> str:
    """What Dagster calls the step that makes the asset."""
    return "__".join(key.path)


def _report(
    result: dg.ExecuteInProcessResult, config: Config, table: TableSettings, failed: StepFailed | None
) -> HistoryReport:
    """What the run's events say of the table."""
    key = asset_key(Kind.HISTORY, table.name)
    events = [event for event in result.get_asset_materialization_events() if event.asset_key == key]
    told = events[-1].materialization.metadata if events else {}
    numbers = {name: item.value for name, item in told.items() if isinstance(item, dg.IntMetadataValue)}
    return HistoryReport(
        table=str(table.name),
        slices=numbers.get("slices") or 0,
        rows=numbers.get("rows") or 0,
        covered=numbers.get("covered_version"),
        path=str(config.history_folder(table.name)),
        error=failed.text if failed else None,
        family=failed.family if failed else None,
    )


def _show(reports: Sequence[HistoryReport]) -> None:
    rows = [
        (
            report.table,
            "" if report.covered is None else str(report.covered),
            str(report.slices),
            str(report.rows),
            "failed" if report.error else "kept" if report.slices else "nothing to do",
            report.path,
        )
        for report in reports
    ]
    show_records("Histories", ("table", "version", "slices", "rows", "result", "kept in"), rows)
    for report in reports:
        if report.error:
            note(f"error: {report.error}")
