"""Commands that do something: each is a Dagster job, run in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from mirror_assets.automation.jobs import (
    ALL_CHECKS,
    MIRROR_ALL,
    REBUILD,
    REBUILD_OP,
    REPLICATE,
    REPLICATE_OP,
    TABLES_OP,
    MirrorTables,
    RebuildTable,
)
from mirror_assets.automation.report import RebuildReport, TableReport
from mirror_assets.cli.asked import Asked
from mirror_assets.cli.exit import Exit, exit_code
from mirror_assets.cli.jobs import execute, failures
from mirror_assets.cli.output import note, show_json, show_records
from mirror_assets.config import Config, load_config
from mirror_assets.fabric.monitoring import MonitoredTable, TableState
from mirror_assets.mirroring.orphans import find_orphans
from mirror_assets.mirroring.zone import open_zone


@dataclass(frozen=True)
class CheckLine:
    """One check as the command line shows it."""

    asset: str
    check: str
    passed: bool
    severity: str
    message: str

    @property
    def is_error(self) -> bool:
        """Whether it makes `check` fail."""
        return not self.passed and self.severity == dg.AssetCheckSeverity.ERROR.value


def run(path: Path | None, tables: Sequence[str], asked: Asked, *, as_json: bool) -> Exit:
    """Mirror the tables until nothing is left; what it did to each."""
    config = load_config(path)
    for name in tables:
        config.table(name)
    reports = mirror(config, tables, asked)
    if as_json:
        show_json(reports)
    else:
        _show_reports(reports)
    return exit_code([report.family for report in reports if report.family])


def mirror(config: Config, tables: Sequence[str] = (), asked: Asked | None = None) -> list[TableReport]:
    """The reports of a `mirror_all` run."""
    asked = asked or Asked()
    ops = MirrorTables(tables=list(tables), first=asked.first, last=asked.last, clip=asked.clip)
    result = execute(config, MIRROR_ALL, {TABLES_OP: ops})
    reports: list[TableReport] = result.output_for_node(TABLES_OP)
    return reports


def check(path: Path | None, *, as_json: bool) -> Exit:
    """Run every asset check on what is there now; it fails when one fails with severity ERROR."""
    config = load_config(path)
    result = execute(config, ALL_CHECKS)
    lines, broken = [*check_lines(result), *orphan_lines(config)], failures(result)
    if as_json:
        show_json(lines)
    else:
        _show_checks(lines)
    _tell([f"{failed.step}: {failed.text}" for failed in broken])
    return Exit.FAILED if broken or any(line.is_error for line in lines) else Exit.FINE


def orphan_lines(config: Config) -> list[CheckLine]:
    """Tables that mirror.yaml no longer names, as warnings: they have no asset that a check could be of."""
    warning = dg.AssetCheckSeverity.WARN.value
    orphans = find_orphans(open_zone(config.landing_zone), config.names)
    return [
        CheckLine(asset=f"landing_zone/{x.name}", check="orphans", passed=False, severity=warning, message=x.message)
        for x in orphans
    ]


def check_lines(result: dg.ExecuteInProcessResult) -> list[CheckLine]:
    """What the checks of a run found."""
    return [
        CheckLine(
            asset=evaluation.asset_key.to_user_string(),
            check=evaluation.check_name,
            passed=evaluation.passed,
            severity=evaluation.severity.value,
            message=evaluation.description or "",
        )
        for evaluation in result.get_asset_check_evaluations()
    ]


def rebuild(path: Path | None, name: str, *, as_json: bool) -> Exit:
    """Rebuild one table, from where an earlier rebuild of it was interrupted."""
    config = load_config(path)
    config.table(name)
    result = execute(config, REBUILD, {REBUILD_OP: RebuildTable(table=name)})
    if not result.success:
        return _failed(result)
    report: RebuildReport = result.output_for_node(REBUILD_OP)
    if as_json:
        show_json([report])
    else:
        note(f"{report.table}: life {report.life} has begun, version {report.covered} is covered")
    return Exit.FINE


def replicate(path: Path | None, *, as_json: bool) -> Exit:
    """Apply what has landed; it fails when a table has failed."""
    result = execute(load_config(path), REPLICATE)
    if not result.success:
        return _failed(result)
    statuses: Sequence[MonitoredTable] = result.output_for_node(REPLICATE_OP)
    if as_json:
        show_json(statuses)
    else:
        _show_statuses(statuses)
    return Exit.FAILED if any(status.state is TableState.FAILED for status in statuses) else Exit.FINE


def _show_reports(reports: Sequence[TableReport]) -> None:
    """One line for each table, then the errors in full."""
    rows = [
        (
            report.table,
            "" if report.covered is None else str(report.covered),
            str(report.slices),
            str(report.files),
            str(report.rows.inserts),
            str(report.rows.updates),
            str(report.rows.deletes),
            f"{report.seconds:.1f}",
            report.result,
        )
        for report in reports
    ]
    columns = ("table", "version", "slices", "files", "inserts", "updates", "deletes", "seconds", "result")
    show_records("Mirrored", columns, rows)
    _tell([report.error for report in reports if report.error])


def _show_checks(lines: Sequence[CheckLine]) -> None:
    rows = [
        (line.asset, line.check, "passed" if line.passed else line.severity, line.message)
        for line in sorted(lines, key=lambda line: (line.passed, line.asset, line.check))
    ]
    show_records("Checks", ("asset", "check", "result", "message"), rows)


def _show_statuses(statuses: Sequence[MonitoredTable]) -> None:
    rows = [
        (
            str(status.name),
            status.state.value,
            "" if status.applied_number is None else str(status.applied_number),
            str(status.waiting_files),
            str(status.processed_rows),
            "" if status.mirror_rows is None else str(status.mirror_rows),
            status.message or "",
        )
        for status in statuses
    ]
    show_records("Mirror", ("table", "state", "applied file", "files waiting", "operations", "rows", "message"), rows)


def _failed(result: dg.ExecuteInProcessResult) -> Exit:
    """Tell what made the run fail, and the exit code for it."""
    broken = failures(result)
    _tell([failed.text for failed in broken])
    return exit_code([failed.family for failed in broken])


def _tell(problems: Sequence[str]) -> None:
    for problem in problems:
        note(f"error: {problem}")
