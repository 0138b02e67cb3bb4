"""`mirror-assets run --follow`: mirrors new commits, and prints a line for each landed slice."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import dagster as dg

from mirror_assets.cli.json_log import is_json
from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import note, note_errors
from mirror_assets.cli.run_job import JsonLines, MessageOnly, execute, failures, logged_event, materialization
from mirror_assets.config.discovered import When
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.errors import MirrorError
from mirror_assets.orchestration.jobs import TABLES_OP, MirrorTables
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL
from mirror_assets.orchestration.resident import FollowSources
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.orchestration.translator import AssetKind, asset_key


@dataclass(frozen=True)
class LandedSlice:
    """A landed slice of a table; `slices` counts those that this command has landed.

    `lag_seconds` is the age of the slice's last commit when it landed.
    """

    table: str
    slice: str
    version: int
    files: int
    rows: int
    lag_seconds: float | None
    slices: int


def follow(path: Path | None, names: Sequence[str], every: float, *, as_json: bool) -> Exit:
    """Mirror new commits until interrupted; a failing table is retried later."""
    config = load_config(path, when=When.REFRESH)
    chosen = config.chosen(names)
    ops = MirrorTables(tables=list(names), follow=FollowSources(every_seconds=every))
    note(f"following {len(chosen)} tables; Ctrl-C ends after the running slices")
    result = execute(config, MIRROR_ALL, {TABLES_OP: ops}, handler=_Landed(config, as_json=as_json))
    if TABLES_OP not in {event.step_key for event in result.all_events if event.is_step_success}:
        broken = [failed.error for failed in failures(result) if failed.error.family != MirrorError.family]
        raise SystemExit(note_errors(broken) or 130)
    reports: list[TableReport] = result.output_for_node(TABLES_OP)
    errors = [report.error for report in reports if report.error]
    for error in errors if as_json else ():
        _print_json({"table": error.table, "error": asdict(error)})
    return note_errors(errors)


class _Landed(logging.Handler):
    """Reads the events of a run as they are logged."""

    def __init__(self, config: Config, *, as_json: bool) -> None:
        super().__init__()
        self.setFormatter(MessageOnly())
        self._names = {asset_key(AssetKind.LANDING, name): str(name) for name in config.names}
        self._slices = Counter[str]()
        self._as_json = as_json
        self._lines = JsonLines() if is_json() else None

    def emit(self, record: logging.LogRecord) -> None:
        """Print a slice that has landed, warnings and errors; print every message as JSON with --log json."""
        if self._lines is not None:
            self._lines.emit(record)
        event = logged_event(record)
        landed = self._slice(event) if event else None
        if landed is not None:
            if self._as_json:
                _print_json(asdict(landed))
            else:
                print(_described(landed), flush=True)  # noqa: T201 the output
        elif event is None and record.levelno >= logging.WARNING and self._lines is None:
            note(self.format(record))

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
        self._slices[name] += 1
        return LandedSlice(
            name,
            partition,
            slices=self._slices[name],
            version=_whole(found.get("covered_version")),
            files=_whole(found.get("files")),
            rows=_whole(found.get("dagster/partition_row_count")),
            lag_seconds=lag if isinstance(lag, float) else None,
        )


def _print_json(line: dict[str, object]) -> None:
    print(json.dumps(line, ensure_ascii=False), flush=True)  # noqa: T201 the output


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _described(landed: LandedSlice) -> str:
    lag = "" if landed.lag_seconds is None else f", {landed.lag_seconds:.1f} s behind its last commit"
    return f"{landed.table}: version {landed.version} has landed, {landed.rows} rows in {landed.files} files{lag}"
