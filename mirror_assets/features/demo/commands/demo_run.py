"""Runs `demo`: builds a lake with a history, mirrors it as it grows, and compares mirror and source."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mirror_assets.cli.execute import CheckLine, broken_checks, check_lines, mirror
from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import note, note_errors, show
from mirror_assets.cli.run_job import execute, failures
from mirror_assets.composition import open_spark
from mirror_assets.config.load import load_config
from mirror_assets.errors import ErrorRecord
from mirror_assets.features.demo.claim import claim, clear, write_config
from mirror_assets.features.demo.with_spark.demo_lake import begin_lake, continue_lake
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.check_jobs import ALL_CHECKS
from mirror_assets.orchestration.jobs import REPLICATE
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.orchestration.translator import AssetKind, asset_key

_EQUAL = "equal to source"


@dataclass(frozen=True)
class DemoLine:
    """A table of the demo: what was mirrored, and whether source and mirror are equal."""

    table: str
    versions: int
    slices: int
    files: int
    inserts: int
    updates: int
    deletes: int
    seconds: float
    result: str


def run_demo(folder: Path, months: int, others: Path | None, *, as_json: bool) -> Exit:
    """Build, mirror, replicate and check; fails if a check fails with severity ERROR, or a table differs."""
    root = folder.resolve()
    root.mkdir(parents=True, exist_ok=True)
    config = load_config(write_config(root, others))
    claim(config)
    times, shown = [time.monotonic()], range(1, months + 1)
    spark = open_spark(config, is_brief=True)
    note(f"First loads of flights, planes, weather, airports and airlines into {root / 'lake'}")
    begin_lake(spark, root, note, shown)
    clear(config)
    times.append(time.monotonic())
    note("Mirroring the lake")
    rounds = [mirror(config)]
    times.append(time.monotonic())
    note("Changing the tables: updates, deletes, merges, schema changes, maintenance")
    continue_lake(spark, root, note, shown)
    times.append(time.monotonic())
    note("Mirroring the lake")
    rounds.append(mirror(config))
    times.append(time.monotonic())

    note("Applying the landing files as Fabric's replicator would, and checking everything")
    replicated, checked = execute(config, REPLICATE), execute(config, ALL_CHECKS)
    checks = check_lines(checked, config)
    times.append(time.monotonic())
    lines = [_line(reports, checks) for reports in zip(*rounds, strict=True)]
    problems = [report.error for reports in rounds for report in reports if report.error]
    problems += [line.error for line in checks if line.error]
    problems += [*(failed.error for failed in failures(replicated)), *broken_checks(checked)]
    _show(lines, _title(config.zone.open().root, times), problems, as_json=as_json)
    for line in checks:
        if not (line.passed or line.error):
            note(f"warning: {line.asset}: {line.check}: {line.message}")
    note_errors(problems)
    return Exit.FINE if not problems and all(line.result == _EQUAL for line in lines) else Exit.FAILED


def _line(reports: Sequence[TableReport], checks: Sequence[CheckLine]) -> DemoLine:
    """Return the line of one table, from its reports of all runs and the check that compares its mirror."""
    table, rows = reports[0].table, [report.rows for report in reports]
    covered = [report.covered for report in reports if report.covered is not None]
    mirror_key = asset_key(AssetKind.MIRROR, TableName.parse(table)).to_user_string()
    compared = [line.passed for line in checks if line.asset == mirror_key and line.check == "reconciled"]
    return DemoLine(
        table=table,
        versions=max(covered, default=-1) + 1,
        slices=sum(report.slices for report in reports),
        files=sum(report.files for report in reports),
        inserts=sum(counts.inserts for counts in rows),
        updates=sum(counts.updates for counts in rows),
        deletes=sum(counts.deletes for counts in rows),
        seconds=round(sum(report.seconds for report in reports), 1),
        result="not compared" if not compared else _EQUAL if compared[0] else "different",
    )


def _title(zone: str, times: Sequence[float]) -> str:
    """Return the title of the table, with the seconds between these times."""
    built, mirrored, changed, mirrored_again, compared = (after - before for before, after in pairwise(times))
    took = f"lake built in {built + changed:.0f} s, mirrored in {mirrored + mirrored_again:.0f} s"
    return f"Into {zone}: {took}, compared in {compared:.0f} s"


def _show(lines: list[DemoLine], title: str, errors: list[ErrorRecord], *, as_json: bool) -> None:
    columns = ("table", "versions", "slices", "files", "inserts", "updates", "deletes", "seconds", "result")
    rows = [
        (
            *(x.table, x.versions, x.slices, x.files),
            *(f"{number:,}" for number in (x.inserts, x.updates, x.deletes)),
            *(x.seconds, x.result),
        )
        for x in lines
    ]
    show(title, columns, rows, lines, errors, as_json=as_json)
    if not as_json:
        note("See the same in the Dagster UI: make dev, then open http://127.0.0.1:3000")
