"""Runs the commands that change something: each runs a Dagster job in this process, and prints its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from mirror_assets.cli.options import FAILED_CHECK, Exit, exit_code
from mirror_assets.cli.output import is_confirmed, note, note_errors, show, show_json
from mirror_assets.cli.progress import showing_progress
from mirror_assets.cli.run_job import execute, failures
from mirror_assets.composition import compose
from mirror_assets.config.discovered import When
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.encode.repair import RepairChanges
from mirror_assets.errors import NEXT, ErrorCode, ErrorRecord
from mirror_assets.feature import assets_of_features
from mirror_assets.landing.folders import find_orphans
from mirror_assets.monitoring import MonitoredTable, TableState
from mirror_assets.orchestration.check_jobs import ALL_CHECKS, CHECK_OP, CheckTables
from mirror_assets.orchestration.checks import require_known
from mirror_assets.orchestration.jobs import (
    REBUILD,
    REBUILD_OP,
    REPAIR,
    REPAIR_OP,
    REPLICATE,
    REPLICATE_OP,
    TABLES_OP,
    MirrorTables,
)
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL
from mirror_assets.orchestration.run_reports import RebuildReport, RepairReport, TableReport
from mirror_assets.orchestration.translator import ASSET_KINDS, AssetKind, asset_key
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import MIRROR_FAILED
from mirror_assets.pipeline.rebuild_table import is_rebuilding, plan_rebuild
from mirror_assets.pipeline.repair_table import Repair, count_repair, plan_repair
from mirror_assets.pipeline.spark_sessions import no_spark


@dataclass(frozen=True)
class CheckLine:
    """The result of one check; of a failed one, the next step. One that makes the command fail has an error."""

    table: str
    asset: str
    check: str
    passed: bool
    severity: str
    message: str
    next_step: str = ""
    error: ErrorRecord | None = None

    @property
    def text(self) -> str:
        """The message, followed by the next step unless the message includes it."""
        if self.next_step in self.message:
            return self.message
        return f"{self.message.removesuffix('.')}.{NEXT}{self.next_step}"


def run(
    path: Path | None, names: Sequence[str], first: str | None, last: str | None, *, clip: bool, as_json: bool
) -> Exit:
    """Mirror the tables until nothing is left; a table that fails doesn't stop the others."""
    ops = MirrorTables(tables=list(names), first=first, last=last, clip=clip)
    config = load_config(path, when=When.REFRESH)
    with showing_progress("slice", as_json=as_json):
        result = execute(config, MIRROR_ALL, {TABLES_OP: ops})
    if any(failed.step == TABLES_OP for failed in failures(result)):
        return _failed(result, as_json=as_json)
    reports: list[TableReport] = result.output_for_node(TABLES_OP)
    rows = [
        (
            *(x.table, x.covered, x.slices, x.files, x.rows.inserts, x.rows.updates, x.rows.deletes),
            *(x.seconds, None if x.rows_per_second is None else round(x.rows_per_second), x.result),
        )
        for x in reports
    ]
    counted = ("slices", "files", "inserts", "updates", "deletes")
    lines = [{**vars(x), "rows_per_second": x.rows_per_second, "result": x.result} for x in reports]
    show("Mirrored", ("table", "version", *counted, "seconds", "rows/s", "result"), rows, lines, as_json=as_json)
    return note_errors(report.error for report in reports if report.error)


def mirror(config: Config) -> list[TableReport]:
    """Run the job `mirror_all` for all tables; return its report of each."""
    reports: list[TableReport] = execute(config, MIRROR_ALL).output_for_node(TABLES_OP)
    return reports


def check(path: Path | None, names: Sequence[str], only: Sequence[str], *, as_json: bool) -> Exit:
    """Run the asset checks of these tables, or all; fails if one fails with severity ERROR.

    `only` names checks; none: all. Raises TABLE_UNKNOWN, and SettingError for an unknown check.
    """
    config = load_config(path)
    config.chosen(names)
    require_known(config, only)
    result = execute(config, ALL_CHECKS, {CHECK_OP: CheckTables(tables=list(names), checks=list(only))})
    orphans = [] if names or only else orphan_lines(config)
    lines, broken = [*check_lines(result, config), *orphans], broken_checks(result)
    rows = [
        (x.asset, x.check, "passed" if x.passed else x.severity, x.text)
        for x in sorted(lines, key=lambda line: (line.passed, line.asset, line.check))
    ]
    show("Checks", ("asset", "check", "result", "message"), rows, lines, broken, as_json=as_json)
    note_errors(broken)
    return exit_code(error.family for error in (*broken, *(line.error for line in lines if line.error)))


def broken_checks(result: dg.ExecuteInProcessResult) -> list[ErrorRecord]:
    """Return the errors of steps in which checks did not run; results of blocking checks are in `check_lines`."""
    return [failed.error for failed in failures(result) if failed.error.code != ErrorCode.CHECKS_FAILED.value]


def check_lines(result: dg.ExecuteInProcessResult, config: Config) -> list[CheckLine]:
    """Return the results of a run's checks, of the tables of this configuration."""
    tables = {
        asset_key(kind, table.name): str(table.name)
        for table in config.all_tables()
        for kind in (*ASSET_KINDS, *map(AssetKind, assets_of_features(config, table)))
    }
    return [_check_line(tables[found.asset_key], found) for found in result.get_asset_check_evaluations()]


def _check_line(table: str, found: dg.AssetCheckEvaluation) -> CheckLine:
    asset, text = found.asset_key.to_user_string(), found.description or ""
    values = {} if found.passed else {name: str(item.value) for name, item in found.metadata.items()}
    step, error = values.get("next_step", ""), None
    if not found.passed and found.severity is dg.AssetCheckSeverity.ERROR:
        code, family = values.get("code", ErrorCode.CHECKS_FAILED.value), values.get("family", FAILED_CHECK)
        error = ErrorRecord(table, code, text, step, family)
    return CheckLine(table, asset, found.check_name, found.passed, found.severity.value, text, step, error)


def orphan_lines(config: Config) -> list[CheckLine]:
    """Return a warning for each table folder that is not in mirror.yaml: it has no asset to attach a check to."""
    warning, orphans = dg.AssetCheckSeverity.WARN.value, find_orphans(config.zone.open(), config.names)
    assets = {x.name: asset_key(AssetKind.LANDING, x.name).to_user_string() for x in orphans}
    return [
        CheckLine(str(x.name), assets[x.name], "orphans", passed=False, severity=warning, message=x.message)
        for x in orphans
    ]


def rebuild(path: Path | None, name: str, *, dry_run: bool, yes: bool, as_json: bool) -> Exit:
    """Rebuild one table, or finish an interrupted rebuild of it. Asks before it begins one, unless `yes`."""
    config = load_config(path)
    (table,) = compose(config, no_spark if dry_run else None).tables([name])
    if dry_run:
        return _show_rebuild(table, as_json=as_json)
    if not yes and not is_rebuilding(table) and not is_confirmed(table.name, plan_rebuild(table).consequence):
        return Exit.FAILED
    with showing_progress("chunk", as_json=as_json):
        result = execute(config, REBUILD, {REBUILD_OP: {"confirm": name}}, partition=name)
    if not result.success:
        return _failed(result, name, as_json=as_json)
    report: RebuildReport = result.output_for_node(REBUILD_OP)
    if as_json:
        show_json([report])
    else:
        note(f"{report.table}: rebuilt from version {report.covered} of the source, as epoch {report.epoch}")
    return Exit.FINE


def _show_rebuild(table: TableContext, *, as_json: bool) -> Exit:
    """Print what a rebuild would do: begin, or continue one that was interrupted."""
    planned, continues = plan_rebuild(table), is_rebuilding(table)
    if as_json:
        show_json([{**vars(planned), "continues": continues}])
    else:
        note(f"{planned.consequence}{'; a rebuild was interrupted, and continues' if continues else ''}")
    return Exit.FINE


def repair(path: Path | None, name: str, *, dry_run: bool, yes: bool, as_json: bool) -> Exit:
    """Land the difference between one table and its mirror. Shows it and asks before, unless `yes`."""
    config = load_config(path)
    if dry_run or not yes:
        project = compose(config, report=note)
        (table,) = project.tables([name])
        planned = plan_repair(table, project.mirror(), note)
        changes = count_repair(planned)
        if dry_run and as_json:
            of = {"table": name, "version": planned.state.version}
            lines = [
                {**of, "marker": marker.name, "rows": rows, "keys": changes.keys.get(marker, ())}
                for marker, rows in changes.counts.items()
            ]
            show_json(lines)
            return Exit.FINE
        note(_described(planned, changes))
        if dry_run or not planned.is_needed:
            return Exit.FINE
        if not is_confirmed(table.name, f"repairing {table.name} lands these rows"):
            return Exit.FAILED
    with showing_progress("step", as_json=as_json):
        result = execute(config, REPAIR, partition=name)
    if not result.success:
        return _failed(result, name, as_json=as_json)
    report: RepairReport = result.output_for_node(REPAIR_OP)
    if as_json:
        show_json([report])
    elif report.version is None:
        note(f"{name}: nothing differs")
    else:
        rows = f"{report.upserts} upserts, {report.updates} updates, {report.deletes} deletes"
        note(f"{name}: repaired to version {report.version} of the source: {rows}")
    return Exit.FINE


def _described(planned: Repair, changes: RepairChanges) -> str:
    """Return the changes as text: a line for each marker with rows, with its first keys."""
    lines = [f"{planned.slice.table}: the difference to version {planned.state.version} of the source"]
    for marker, rows in changes.counts.items():
        such = f": {', '.join(changes.keys[marker])}" if rows else ""
        lines.append(f"  {rows:,} {marker.name}{such}")
    return "\n".join(lines)


def replicate(path: Path | None, *, as_json: bool) -> Exit:
    """Apply the landing files; fails if a table has failed."""
    result = execute(load_config(path), REPLICATE)
    if not result.success:
        return _failed(result, as_json=as_json)
    tables: Sequence[MonitoredTable] = result.output_for_node(REPLICATE_OP)
    rows = [
        (x.name, x.state.value, x.applied_number, x.waiting_files, x.processed_rows, x.mirror_rows, x.message)
        for x in tables
    ]
    columns = ("table", "state", "applied file", "files waiting", "operations", "rows", "message")
    errors = [
        MIRROR_FAILED(table=str(x.name), why=x.message or "no reason given").record(str(x.name))
        for x in tables
        if x.state is TableState.FAILED
    ]
    show("Mirror", columns, rows, tables, errors, as_json=as_json)
    return note_errors(errors)


def _failed(result: dg.ExecuteInProcessResult, table: str | None = None, *, as_json: bool) -> Exit:
    """Print the errors of the run, of one table or of none; return the exit code for them."""
    errors = [failed.error for failed in failures(result, table)]
    if as_json:
        show_json((), errors)
    return note_errors(errors)
