"""The command `history`: appends to the histories, and reports each table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mirror_assets.cli.options import Exit, configured, dry_run, examples, tables

if TYPE_CHECKING:
    import dagster as dg

    from mirror_assets.config.model import Config
    from mirror_assets.errors import ErrorRecord
    from mirror_assets.landing.names import TableName


@dataclass(frozen=True)
class HistoryReport:
    """The slices and rows that a run has appended, or would append, to a table's history, and the error, if any.

    `covered` is the version up to which the history is complete then. The rows that would be appended are estimated.
    """

    table: str
    slices: int
    rows: int
    covered: int | None
    path: str
    error: ErrorRecord | None = None


@click.command(epilog=examples("history", "history 'sales.*' --dry-run", "history sales.orders --skip-to 120"))
@tables
@dry_run
@click.option(
    "--skip-to",
    type=click.IntRange(0),
    metavar="VERSION",
    help="Continue the history of one table at this version; it will lack the commits before.",
)
@configured
def history(config: Path | None, names: tuple[str, ...], skip_to: int | None, *, dry_run: bool, as_json: bool) -> Exit:
    """Append new changes to the history of each table with the setting `history`."""
    from mirror_assets.config.load import load_config
    from mirror_assets.features.history.errors import SKIP_TO_NEEDS_A_TABLE

    loaded = load_config(config)
    chosen = _chosen(loaded, names)
    if skip_to is not None and len(chosen) != 1:
        raise SKIP_TO_NEEDS_A_TABLE()
    return (_plan if dry_run else _append)(loaded, chosen, skip_to, as_json=as_json)


def _plan(config: Config, chosen: list[TableName], skip_to: int | None, *, as_json: bool) -> Exit:
    """Show what would be appended, from the logs alone."""
    from mirror_assets.cli.output import note_errors, show

    lines = [_planned(config, name, skip_to) for name in chosen]
    rows = [(x.table, x.covered, x.slices, f"about {x.rows}", x.path) for x in lines]
    show("Would be appended", ("table", "to version", "slices", "rows", "kept in"), rows, lines, as_json=as_json)
    return note_errors(line.error for line in lines if line.error)


def _planned(config: Config, name: TableName, skip_to: int | None) -> HistoryReport:
    from mirror_assets.errors import MirrorError
    from mirror_assets.features.history.history_plan import plan_backlog
    from mirror_assets.features.history.with_dagster.opening import history_uri, open_history
    from mirror_assets.pipeline.project import source_log
    from mirror_assets.pipeline.spark_sessions import no_spark

    table, path = config.table(name), history_uri(config, name)
    opened = open_history(config, table, source_log(config, table), no_spark)
    slices, rows, last, stop = 0, 0, None, None
    try:
        for plan in plan_backlog(opened, opened.history.newest(), skip_to):
            slices, rows = slices + len(plan.slices), rows + sum(one.rows for one in plan.slices)
            last, stop = plan.slices[-1].last if plan.slices else last, plan.stop
    except MirrorError as error:
        return HistoryReport(str(name), 0, 0, None, path, error.record(str(name)))
    return HistoryReport(str(name), slices, rows, last, path, stop.record(str(name)) if stop else None)


def _append(loaded: Config, chosen: list[TableName], skip_to: int | None, *, as_json: bool) -> Exit:
    from mirror_assets.cli.output import note_errors, show
    from mirror_assets.cli.progress import showing_progress
    from mirror_assets.cli.run_job import execute
    from mirror_assets.features.history import HISTORY
    from mirror_assets.features.history.with_dagster.history_asset import KeepHistory
    from mirror_assets.orchestration.mirror_assets import step_name
    from mirror_assets.orchestration.translator import AssetKind, asset_key
    from mirror_assets.telemetry.progress import expect

    keys = {name: asset_key(AssetKind(HISTORY), name) for name in chosen}
    ops = {step_name(key): KeepHistory(skip_to=skip_to) for key in keys.values()}
    with showing_progress("slice", as_json=as_json):
        for name in chosen:
            expect(str(name), ())
        result = execute(loaded, HISTORY, ops, list(keys.values()))
    reports = [_report(result, loaded, name, key) for name, key in keys.items()]
    rows = [
        (x.table, x.covered, x.slices, x.rows, "failed" if x.error else "kept" if x.slices else "nothing to do", x.path)
        for x in reports
    ]
    show("Histories", ("table", "version", "slices", "rows", "result", "kept in"), rows, reports, as_json=as_json)
    return note_errors(report.error for report in reports if report.error)


def _chosen(config: Config, names: tuple[str, ...]) -> list[TableName]:
    """Return these tables, or all that have a history and match. Raises TABLE_UNKNOWN, MISTAKES for one without."""
    from mirror_assets.config.errors import Problem
    from mirror_assets.features.history.history_settings import HistoryTable

    matching = config.chosen(names)
    tables = [table for table in matching if str(table.name) in names or HistoryTable.of(table).keeps_history]
    off = [table.name for table in tables if not HistoryTable.of(table).keeps_history]
    without = [Problem(f"tables.{name}.history", "write slices or stream") for name in off]
    if not tables:
        without = [Problem("defaults.history", "no table has a history: write slices or stream")]
    if without:
        raise config.invalid(tuple(without))
    return [table.name for table in tables]


def _report(result: dg.ExecuteInProcessResult, config: Config, table: TableName, key: dg.AssetKey) -> HistoryReport:
    import dagster as dg

    from mirror_assets.cli.run_job import failures
    from mirror_assets.features.history.with_dagster.opening import history_uri
    from mirror_assets.orchestration.mirror_assets import step_name

    found = [one.materialization for one in result.get_asset_materialization_events() if one.asset_key == key]
    metadata = found[-1].metadata if found else {}
    numbers = {name: item.value for name, item in metadata.items() if isinstance(item, dg.IntMetadataValue)}
    failed = next((one for one in failures(result, str(table)) if one.step == step_name(key)), None)
    return HistoryReport(
        table=str(table),
        slices=numbers.get("slices") or 0,
        rows=numbers.get("rows") or 0,
        covered=numbers.get("covered_version"),
        path=history_uri(config, table),
        error=failed.error if failed else None,
    )
