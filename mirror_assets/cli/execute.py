"""Commands that run Dagster jobs in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from mirror_assets.automation.console import PLAIN
from mirror_assets.automation.jobs import ALL_CHECKS, MIRROR_ALL, REBUILD, TABLES_OP, MirrorTables, RebuildTable
from mirror_assets.automation.report import TableReport
from mirror_assets.cli.output import note, show_json, show_records
from mirror_assets.config import Config, load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.replicator import TableState
from mirror_assets.resources.catalog import replicator, resources
from mirror_assets.resources.landing_zone import LandingZone

_FINE, _FAILED, _BAD_SETTING = 0, 1, 2


@dataclass(frozen=True)
class CheckLine:
    """One check as the command line shows it."""

    asset: str
    check: str
    passed: bool
    severity: str
    message: str


def run(path: Path | None, tables: Sequence[str], *, as_json: bool) -> int:
    """Mirror the tables until nothing is left; what it did to each."""
    config = load_config(path)
    for name in tables:
        config.table(name)
    reports = mirror(config, tables)
    if as_json:
        show_json(reports)
    else:
        show_reports(reports)
    return exit_code(reports)


def mirror(config: Config, tables: Sequence[str] = ()) -> list[TableReport]:
    """The reports of a `mirror_all` run in this process."""
    ops: dict[str, dg.Config] = {TABLES_OP: MirrorTables(tables=list(tables))}
    with _instance() as instance:
        result = _job(config, MIRROR_ALL).execute_in_process(
            instance=instance, run_config=_run_config(ops), raise_on_error=False
        )
        reports: list[TableReport] = result.output_for_node(TABLES_OP)
    return reports


def exit_code(reports: Sequence[TableReport]) -> int:
    """1 when a table failed, 2 when all that failed need another setting."""
    failed = [report for report in reports if report.error]
    if not failed:
        return _FINE
    return _BAD_SETTING if all(report.is_setting for report in failed) else _FAILED


def show_reports(reports: Sequence[TableReport]) -> None:
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
            "failed" if report.error else "mirrored" if report.slices else "nothing to do",
        )
        for report in reports
    ]
    columns = ("table", "version", "slices", "files", "inserts", "updates", "deletes", "seconds", "result")
    show_records("Mirrored", columns, rows)
    for report in reports:
        if report.error:
            note(f"error: {report.error}")


def check(path: Path | None, *, as_json: bool) -> int:
    """Run every asset check on what is there now; 1 when one fails with severity ERROR."""
    config = load_config(path)
    with _instance() as instance:
        result = _job(config, ALL_CHECKS).execute_in_process(
            instance=instance, run_config=_run_config({}), raise_on_error=False
        )
    lines = [_check_line(evaluation) for evaluation in result.get_asset_check_evaluations()]
    broken = [event for event in result.all_events if event.is_step_failure and not _is_check_failure(event)]
    if as_json:
        show_json(lines)
    else:
        _show_checks(lines)
    for event in broken:
        note(f"error: {event.step_key}: {_failure_text(event)}")
    failed = any(not line.passed and line.severity == dg.AssetCheckSeverity.ERROR.value for line in lines)
    return _FAILED if failed or broken else _FINE


def rebuild(path: Path | None, name: str) -> int:
    """Rebuild one table, from where an earlier rebuild of it was interrupted."""
    config = load_config(path)
    config.table(name)
    ops: dict[str, dg.Config] = {"rebuild_op": RebuildTable(table=name)}
    with _instance() as instance:
        result = _job(config, REBUILD).execute_in_process(
            instance=instance, run_config=_run_config(ops), raise_on_error=False
        )
    for event in result.all_events:
        if event.is_step_failure:
            note(f"error: {_failure_text(event)}")
    return _FINE if result.success else _FAILED


def replicate(path: Path | None, *, as_json: bool) -> int:
    """Apply what has landed; 1 when a table has failed."""
    config = load_config(path)
    zone = resources(config)["landing_zone"]
    if not isinstance(zone, LandingZone):
        raise TypeError(type(zone))
    statuses = replicator(config, zone).poll()
    if as_json:
        show_json(statuses)
    else:
        rows = [
            (
                str(s.name),
                s.state.value,
                str(s.applied_number),
                str(s.processed_rows),
                str(s.mirror_rows),
                s.message or "",
            )
            for s in statuses
        ]
        show_records("Mirror", ("table", "state", "applied file", "operations", "rows", "message"), rows)
    return _FAILED if any(status.state is TableState.FAILED for status in statuses) else _FINE


@contextmanager
def _instance() -> Iterator[dg.DagsterInstance]:
    """The instance of DAGSTER_HOME, so that the UI shows what the command did; without one, a passing one."""
    opened = dg.DagsterInstance.get() if os.environ.get("DAGSTER_HOME") else dg.DagsterInstance.ephemeral()
    with opened as instance:
        yield instance


def _job(config: Config, name: str) -> dg.JobDefinition:
    return build_definitions(config).resolve_job_def(name)


def _run_config(ops: dict[str, dg.Config]) -> dg.RunConfig:
    return dg.RunConfig(ops=ops, loggers={PLAIN: {"config": {}}})


def _check_line(evaluation: dg.AssetCheckEvaluation) -> CheckLine:
    return CheckLine(
        asset=evaluation.asset_key.to_user_string(),
        check=evaluation.check_name,
        passed=evaluation.passed,
        severity=evaluation.severity.value,
        message=evaluation.description or "",
    )


def _show_checks(lines: Sequence[CheckLine]) -> None:
    rows = [
        (line.asset, line.check, "passed" if line.passed else line.severity, line.message)
        for line in sorted(lines, key=lambda line: (line.passed, line.asset, line.check))
    ]
    show_records("Checks", ("asset", "check", "result", "message"), rows)


def _is_check_failure(event: dg.DagsterEvent) -> bool:
    """Whether a step failed only because its blocking check did: the check's own line says it better."""
    error = event.step_failure_data.error
    return bool(error and "DagsterAssetCheckFailedError" in (error.cls_name or ""))


def _failure_text(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    return data.error.message if data.error else "the step failed"
