"""`mirror-assets run --follow`: mirrors new commits, and shows the tables in one live table."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import dagster as dg
from rich.console import Console
from rich.live import Live
from rich.table import Table

from mirror_assets.cli.json_log import is_json
from mirror_assets.cli.options import Exit, exit_code
from mirror_assets.cli.output import note, note_reported
from mirror_assets.cli.run_job import JsonLines, MessageOnly, execute, logged_event, materialization
from mirror_assets.config.discovered import When
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.orchestration.jobs import TABLES_OP, MirrorTables
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL
from mirror_assets.orchestration.resident import FollowSources
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.orchestration.translator import AssetKind, asset_key

# Lines of the live table: tables that landed something last come first.
_LINES = 20


@dataclass(frozen=True)
class LandedSlice:
    """The newest landed slice of a table, for the live table and lines of JSON. `slices` counts those of this command.

    `lag_seconds` is the age of the slice's last commit when it landed.
    """

    table: str
    slice: str
    version: int
    files: int
    rows: int
    lag_seconds: float | None
    slices: int = 1


def follow(path: Path | None, names: Sequence[str], every: float, *, as_json: bool) -> Exit:
    """Mirror new commits until interrupted; a failing table is retried later."""
    config = load_config(path, when=When.REFRESH)
    chosen = config.chosen(names)
    ops = MirrorTables(tables=list(names), follow=FollowSources(every_seconds=every))
    note(f"following {len(chosen)} tables; Ctrl-C ends after the running slices")
    landed = _Landed(config)
    if as_json or not sys.stdout.isatty():
        landed.show = _print_json if as_json else _print_line
        result = execute(config, MIRROR_ALL, {TABLES_OP: ops}, handler=landed)
    else:
        with Live(landed.as_table(), console=Console(highlight=False, emoji=False), refresh_per_second=2) as live:
            landed.show = lambda _: live.update(landed.as_table())
            result = execute(config, MIRROR_ALL, {TABLES_OP: ops}, handler=landed)
    if TABLES_OP not in {event.step_key for event in result.all_events if event.is_step_success}:
        raise SystemExit(130)
    reports: list[TableReport] = result.output_for_node(TABLES_OP)
    note_reported(report.error for report in reports)
    return exit_code(report.family for report in reports if report.family)


class _Landed(logging.Handler):
    """Reads the events of a run as they are logged."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.setFormatter(MessageOnly())
        self._names = {asset_key(AssetKind.LANDING, name): str(name) for name in config.names}
        self._landed: dict[str, LandedSlice] = {}
        self.show: Callable[[LandedSlice], None] = _print_line
        self._lines = JsonLines() if is_json() else None

    def emit(self, record: logging.LogRecord) -> None:
        """Show a slice that has landed, and print warnings and errors; print every message as JSON with --log json."""
        if self._lines is not None:
            self._lines.emit(record)
        event = logged_event(record)
        landed = self._slice(event) if event else None
        if landed is not None:
            before = self._landed.pop(landed.table, None)
            counted = replace(landed, slices=before.slices + 1) if before else landed
            self._landed[landed.table] = counted
            self.show(counted)
        elif event is None and record.levelno >= logging.WARNING and self._lines is None:
            note(self.format(record))

    def as_table(self) -> Table:
        """Return the tables that landed something, the newest first."""
        table = Table(title=f"Following, {time.strftime('%H:%M:%S')}", title_justify="left", title_style="bold")
        for name in ("table", "version", "slices", "rows", "lag, s"):
            table.add_column(name, justify="left" if name == "table" else "right")
        for x in [*self._landed.values()][: -_LINES - 1 : -1]:
            lag = "" if x.lag_seconds is None else f"{x.lag_seconds:.1f}"
            table.add_row(x.table, str(x.version), str(x.slices), f"{x.rows:,}", lag)
        return table

    def _slice(self, event: dg.DagsterEvent) -> LandedSlice | None:
        """Return the landed slice of the event, or None."""
        materialized = materialization(event)
        if materialized is None:
            return None
        name, partition = self._names.get(materialized.asset_key), materialized.partition
        if name is None or partition is None:
            return None
        found = {key: item.value for key, item in materialized.metadata.items()}
        lag = found.get("lag_seconds")
        return LandedSlice(
            name,
            partition,
            version=_whole(found.get("covered_version")),
            files=_whole(found.get("files")),
            rows=_whole(found.get("dagster/partition_row_count")),
            lag_seconds=lag if isinstance(lag, float) else None,
        )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _print_line(landed: LandedSlice) -> None:
    lag = "" if landed.lag_seconds is None else f", {landed.lag_seconds:.1f} s behind its last commit"
    line = f"{landed.table}: version {landed.version} has landed, {landed.rows} rows in {landed.files} files{lag}"
    print(line, flush=True)  # noqa: T201 the output


def _print_json(landed: LandedSlice) -> None:
    print(json.dumps(asdict(landed), ensure_ascii=False), flush=True)  # noqa: T201 the output
