"""The command `history`: appends to the histories, and reports each table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mirror_assets.cli.options import Exit, configured, examples, exit_code, tables

if TYPE_CHECKING:
    import dagster as dg

    from mirror_assets.config.model import Config
    from mirror_assets.landing.names import TableName


@dataclass(frozen=True)
class HistoryReport:
    """The slices and rows that a run appended to a table's history, the covered version, and the error, if any."""

    table: str
    slices: int
    rows: int
    covered: int | None
    path: str
    error: str | None = None
    family: str | None = None


@click.command(epilog=examples("history", "history --table sales.orders --skip-to 120"))
@tables
@click.option(
    "--skip-to",
    type=click.IntRange(0),
    metavar="VERSION",
    help="Continue the history of one table at this version; it will lack the commits before.",
)
@configured
def history(config: Path | None, names: tuple[str, ...], skip_to: int | None, *, as_json: bool) -> Exit:
    """Append new changes to the history of each table with the setting `history`."""
    from mirror_assets.cli.output import note_reported, show
    from mirror_assets.cli.run_job import execute
    from mirror_assets.config.load import load_config
    from mirror_assets.features.history import HISTORY
    from mirror_assets.features.history.errors import SKIP_TO_NEEDS_A_TABLE
    from mirror_assets.features.history.with_dagster.history_asset import KeepHistory
    from mirror_assets.orchestration.mirror_assets import step_name
    from mirror_assets.orchestration.translator import AssetKind, asset_key

    loaded = load_config(config)
    chosen = _chosen(loaded, names)
    if skip_to is not None and len(names) != 1:
        raise SKIP_TO_NEEDS_A_TABLE()
    keys = {name: asset_key(AssetKind(HISTORY), name) for name in chosen}
    ops = {step_name(key): KeepHistory(skip_to=skip_to) for key in keys.values()}
    result = execute(loaded, HISTORY, ops, list(keys.values()))
    reports = [_report(result, loaded, name, key) for name, key in keys.items()]
    rows = [
        (x.table, x.covered, x.slices, x.rows, "failed" if x.error else "kept" if x.slices else "nothing to do", x.path)
        for x in reports
    ]
    show("Histories", ("table", "version", "slices", "rows", "result", "kept in"), rows, reports, as_json=as_json)
    if not as_json:
        note_reported(report.error for report in reports)
    return exit_code(report.family for report in reports if report.family)


def _chosen(config: Config, names: tuple[str, ...]) -> list[TableName]:
    """Return these tables, or all with a history. Raises TABLE_UNKNOWN, and MISTAKES for one without a history."""
    from mirror_assets.config.errors import Problem
    from mirror_assets.features.history.history_settings import HistoryTable

    tables = [table for table in config.chosen(names) if names or HistoryTable.of(table).keeps_history]
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
    failed = next((one for one in failures(result) if one.step == step_name(key)), None)
    return HistoryReport(
        table=str(table),
        slices=numbers.get("slices") or 0,
        rows=numbers.get("rows") or 0,
        covered=numbers.get("covered_version"),
        path=history_uri(config, table),
        error=failed.text if failed else None,
        family=failed.family if failed else None,
    )
