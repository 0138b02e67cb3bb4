"""`mirror-assets run --follow`: mirrors new commits, and shows the tables in one live table."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import dagster as dg
from rich.console import Console
from rich.live import Live
from rich.table import Table

from mirror_assets.cli.exit import Exit, exit_code
from mirror_assets.cli.json_lines import JsonLines
from mirror_assets.cli.json_log import is_json
from mirror_assets.cli.output import note, note_reported
from mirror_assets.cli.run_job import MessageOnly, execute
from mirror_assets.config import Config, When, load_config
from mirror_assets.orchestration.asset_names import AssetKind, asset_key
from mirror_assets.orchestration.jobs import MIRROR_ALL, TABLES_OP, MirrorTables
from mirror_assets.orchestration.mirror_tables import FollowSources
from mirror_assets.orchestration.run_reports import TableReport

# Lines of the live table: tables that landed something last come first.
_LINES = 20


@dataclass(frozen=True)
class LandedSlice:
    """What is shown of a table, or printed as a line of JSON: its newest landed slice, and what it has added up to.

    `lag_seconds` is the age of the slice's last commit when it landed.
    """

    table: str
    slice: str
    version: int
    files: int
    rows: int
    lag_seconds: float | None
    slices: int = 1

    def behind(self, before: LandedSlice | None) -> LandedSlice:
        """Return it with the slices that were counted before."""
        return self if before is None else replace(self, slices=before.slices + 1)


def follow(path: Path | None, names: Sequence[str], every: float, *, as_json: bool) -> Exit:
    """Mirror new commits until interrupted; a failing table is retried later."""
    config = load_config(path, when=When.REFRESH)
    chosen = config.chosen(names)
    ops = MirrorTables(tables=list(names), follow=FollowSources(every_seconds=every))
    note(f"following {len(chosen)} tables; Ctrl-C ends after the running slices")
    with _progress(config, as_json=as_json) as handler:
        result = execute(config, MIRROR_ALL, {TABLES_OP: ops}, handler=handler)
    if TABLES_OP not in {event.step_key for event in result.all_events if event.is_step_success}:
        raise SystemExit(130)
    reports: list[TableReport] = result.output_for_node(TABLES_OP)
    note_reported(report.error for report in reports)
    return exit_code(report.family for report in reports if report.family)


@contextmanager
def _progress(config: Config, *, as_json: bool) -> Iterator[logging.Handler]:
    """Show what lands: as lines of JSON, as a live table on a terminal, or else as lines."""
    handler = _Landed(config)
    if as_json or not sys.stdout.isatty():
        handler.show = _print_json if as_json else _print_line
        yield handler
        return
    with Live(handler.as_table(), console=Console(highlight=False, emoji=False), refresh_per_second=2) as live:
        handler.show = lambda _: live.update(handler.as_table())
        yield handler


class _Landed(logging.Handler):
    """Reads the events of a run as they are logged."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.setFormatter(MessageOnly())
        self._names = {asset_key(AssetKind.LANDING, name): str(name) for name in config.names}
        self._landed: dict[str, LandedSlice] = {}
        self.show: Callable[[LandedSlice], None] = _print_line
        self._lines = JsonLines(MessageOnly()) if is_json() else None

    def emit(self, record: logging.LogRecord) -> None:
        """Show a slice that has landed; print a warning or an error, and as lines of JSON everything."""
        if self._lines is not None:
            self._lines.emit(record)
        meta = getattr(record, "dagster_meta", {})
        event = meta.get("dagster_event") if isinstance(meta, Mapping) else None
        landed = self._slice(event) if isinstance(event, dg.DagsterEvent) else None
        if landed is not None:
            counted = landed.behind(self._landed.pop(landed.table, None))
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
        if event.event_type is not dg.DagsterEventType.ASSET_MATERIALIZATION:
            return None
        materialized = event.step_materialization_data.materialization
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
    _print(f"{landed.table}: version {landed.version} has landed, {landed.rows} rows in {landed.files} files{lag}")


def _print_json(landed: LandedSlice) -> None:
    _print(json.dumps(asdict(landed), ensure_ascii=False))


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
