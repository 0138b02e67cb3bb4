"""`mirror-assets demo`: a lake with a past, mirrored as it happens, replicated, and proved equal to its source."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.automation.report import TableReport
from mirror_assets.cli.execute import exit_code, mirror
from mirror_assets.cli.output import note, show_json, show_records
from mirror_assets.cli.show import reconcile_all
from mirror_assets.config import Config, load_config
from mirror_assets.delta.session import open_session
from mirror_assets.demo.config import write_config
from mirror_assets.demo.lake import begin_lake, continue_lake
from mirror_assets.replicator import LocalReplicator
from mirror_assets.replicator.reconciliation import ReconcileState, Reconciliation
from mirror_assets.storage import LocalStore

_FINE, _FAILED = 0, 1


@dataclass(frozen=True)
class DemoLine:
    """A table of the demo, from its source to its mirror."""

    table: str
    versions: int
    slices: int
    files: int
    inserts: int
    updates: int
    deletes: int
    seconds: float
    result: str


def demo(folder: Path, months: int, *, as_json: bool) -> int:
    """Build, mirror, replicate, reconcile; 1 unless every table equals its source."""
    began = time.monotonic()
    root = folder.resolve()
    root.mkdir(parents=True, exist_ok=True)
    config = load_config(write_config(root))
    spark = open_session(config.spark.settings)
    span = range(1, months + 1)
    note(f"First loads of flights, planes, weather, airports and airlines into {root / 'lake'}")
    _clear(config)
    begin_lake(spark, root, note, span)
    rounds = [_mirror(config)]
    note("What happens to the tables afterwards")
    continue_lake(spark, root, note, span)
    rounds.append(_mirror(config))
    note("Applying the landing files as Fabric's replicator would")
    LocalReplicator(LocalStore(config.landing_zone.path), config.mirror.path).poll()
    results = reconcile_all(config)
    lines = _lines(rounds, results)
    _show(lines, root, time.monotonic() - began, as_json=as_json)
    failed = [report for reports in rounds for report in reports if report.error]
    for report in failed:
        note(f"error: {report.error}")
    equal = all(result.state is ReconcileState.EQUAL for result in results)
    return exit_code(failed) if failed else _FINE if equal else _FAILED


def _mirror(config: Config) -> list[TableReport]:
    note("Mirroring what the lake holds now")
    return mirror(config)


def _clear(config: Config) -> None:
    """Start over: the landing zone and the mirror of an earlier demo belong to a lake that is made anew."""
    for folder in (config.landing_zone.path, config.mirror.path):
        shutil.rmtree(folder, ignore_errors=True)


def _lines(rounds: list[list[TableReport]], results: list[Reconciliation]) -> list[DemoLine]:
    lines = []
    for index, result in enumerate(results):
        reports = [reports[index] for reports in rounds]
        rows = [report.rows for report in reports]
        lines.append(
            DemoLine(
                table=result.table,
                versions=result.version + 1,
                slices=sum(report.slices for report in reports),
                files=sum(report.files for report in reports),
                inserts=sum(counts.inserts for counts in rows),
                updates=sum(counts.updates for counts in rows),
                deletes=sum(counts.deletes for counts in rows),
                seconds=round(sum(report.seconds for report in reports), 1),
                result="equal to source" if result.state is ReconcileState.EQUAL else result.state.value,
            )
        )
    return lines


def _show(lines: list[DemoLine], root: Path, seconds: float, *, as_json: bool) -> None:
    if as_json:
        show_json(lines)
        return
    columns = ("table", "versions", "slices", "files", "inserts", "updates", "deletes", "seconds", "result")
    rows = [
        (
            line.table,
            str(line.versions),
            str(line.slices),
            str(line.files),
            f"{line.inserts:,}",
            f"{line.updates:,}",
            f"{line.deletes:,}",
            f"{line.seconds:.1f}",
            line.result,
        )
        for line in lines
    ]
    show_records(f"Mirrored in {seconds:.0f} s, into {root / 'landing'}", columns, rows)
    note("See the same in the Dagster UI: make dev, then open http://127.0.0.1:3000")
