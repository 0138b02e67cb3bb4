"""Commands that read logs and the landing zone: no Dagster run, and no Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, note_errors, show
from mirror_assets.composition import Project
from mirror_assets.config import load_config
from mirror_assets.errors import MirrorError
from mirror_assets.fabric.monitoring import MonitoredTable
from mirror_assets.history.history_log import HistoryLog
from mirror_assets.landing.cost import daily_cost
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.drop import find_orphans
from mirror_assets.pipeline.errors import stop_error
from mirror_assets.pipeline.pending import feed_deadline, pending_commits, table_lag
from mirror_assets.pipeline.plan import plan_table, slice_key
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import EVERYTHING, Range

_Mirrored = Mapping[TableName, MonitoredTable]


@dataclass(frozen=True)
class SliceLine:
    """A slice that waits to be mirrored."""

    table: str
    slice: str
    kind: str
    commits: int
    rows: int
    rows_exact: bool
    bytes: int
    parts: int
    chunk: str | None = None


@dataclass(frozen=True)
class StatusLine:
    """What is known of a table; None for what can't be read, and then `error` says why.

    `readable_seconds`: time left to read the oldest waiting commit. `kept`: the version up to which its history goes.
    `day_requests` and `day_cu_seconds`: what a day of it costs on OneLake, as estimated from its newest slices.
    """

    table: str
    tip: int | None
    covered: int | None
    lag_seconds: float | None
    readable_seconds: float | None
    landed: int | None
    applied: int | None
    state: str
    message: str
    kept: int | None = None
    error: str | None = None
    day_requests: int | None = None
    day_cu_seconds: int | None = None


def plan(path: Path | None, names: Sequence[str], commits: Range = EVERYTHING, *, as_json: bool) -> Exit:
    """Show the pending slices, and where a break stops a table."""
    project = Project.of(load_config(path))
    lines, errors = list[SliceLine](), list[MirrorError]()
    for table in project.tables(names):
        try:
            planned = plan_table(table, requested=commits)
        except MirrorError as error:
            errors.append(error)
            continue
        lines += [_slice_line(table.name, one) for one in planned.slices]
        if planned.stop:
            note(stop_error(table.name, planned.stop).what)
    rows = [
        (
            x.table,
            x.slice,
            f"{x.kind}, chunk {x.chunk}" if x.chunk else x.kind,
            x.commits,
            x.rows if x.rows_exact else f"about {x.rows}",
            x.bytes,
            x.parts,
        )
        for x in lines
    ]
    columns = ("table", "slice", "kind", "commits", "rows", "bytes", "parts")
    show("Pending slices", columns, rows, lines, as_json=as_json)
    return note_errors(errors)


def _slice_line(table: TableName, planned: PlannedSlice) -> SliceLine:
    kind, commits = ("snapshot", 1) if planned.is_snapshot else ("changes", planned.last - planned.first + 1)
    return SliceLine(
        table=str(table),
        slice=str(slice_key(planned)),
        kind="start" if planned.is_start else kind,
        commits=0 if planned.is_start else commits,
        rows=planned.rows,
        rows_exact=planned.rows_exact,
        bytes=planned.bytes,
        parts=planned.parts,
        chunk=str(planned.chunk) if planned.chunk else None,
    )


def status(path: Path | None, names: Sequence[str], *, as_json: bool) -> Exit:
    """Show what is covered, landed and applied; it fails if a source can't be read."""
    project = Project.of(load_config(path))
    mirror, mirrored = project.mirror(), None
    lines, errors, unreadable = list[StatusLine](), list[MirrorError](), list[MirrorError]()
    try:
        mirrored = {status.name: status for status in mirror.status()}
    except MirrorError as error:  # what has landed is shown all the same
        errors.append(error)
    for table in project.tables(names):
        try:
            line = _landed(table, mirrored)
        except MirrorError as error:
            lines.append(_unknown(table.name, error))
            errors.append(error)
            continue
        try:
            lines.append(_with_source(table, line))
        except MirrorError as error:
            lines.append(replace(line, error=str(error), message=error.what))
            unreadable.append(error)
    _show_status(lines, as_json=as_json)
    if not names:
        try:
            for orphan in find_orphans(project.store, project.config.names):
                note(orphan.message)
        except MirrorError as error:
            errors.append(error)
    code = note_errors([*errors, *unreadable])
    return Exit.FAILED if unreadable else code


def _landed(table: TableContext, mirrored: _Mirrored | None) -> StatusLine:
    """Return what landing zone, mirror and history tell of the table; `mirrored` is None where the mirror doesn't."""
    manifest, status = table.manifest(), mirrored.get(table.name) if mirrored else None
    absent = "not mirrored yet" if mirrored is not None else "unknown"
    loading = str(manifest.loading) if manifest and manifest.loading else ""
    cost = drive(daily_cost(table.name, manifest, time.time()), table.store) if manifest else None
    return StatusLine(
        table=str(table.name),
        tip=None,
        covered=manifest.covered if manifest else -1,
        lag_seconds=None,
        readable_seconds=None,
        landed=manifest.next_number - 1 if manifest else 0,
        applied=status.applied_number if status else 0,
        state=status.state.value if status else absent,
        message=(status and status.message) or loading,
        kept=_kept(table),
        day_requests=round(cost.requests) if cost else None,
        day_cu_seconds=round(cost.capacity_seconds) if cost else None,
    )


def _kept(table: TableContext) -> int | None:
    """Return the version up to which the table's history goes, or None."""
    if not table.table.keeps_history:
        return None
    uri = table.config.history_uri(table.name)
    newest = HistoryLog(str(table.name), uri, table.config.access(uri)).newest()
    return newest.last if newest else None


def _with_source(table: TableContext, line: StatusLine) -> StatusLine:
    """Add what the source's log tells. Raises what reading the log raises."""
    pending, now = pending_commits(table), time.time()
    lag, deadline = table_lag(pending, now), feed_deadline(table, pending, now)
    return replace(line, tip=lag.tip, lag_seconds=round(lag.seconds, 1), readable_seconds=deadline.seconds_left)


def _unknown(table: TableName, error: MirrorError) -> StatusLine:
    """Return the line of a table whose manifest or history can't be read."""
    return StatusLine(str(table), None, None, None, None, None, None, "unknown", error.what, error=str(error))


def _show_status(lines: Sequence[StatusLine], *, as_json: bool) -> None:
    columns = (
        "table",
        "source",
        "covered",
        "lag seconds",
        "hours left",
        "landed file",
        "applied file",
        "kept",
        "requests a day",
        "CU s a day",
    )
    rows = [
        (
            x.table,
            x.tip,
            x.covered,
            None if x.lag_seconds is None else f"{x.lag_seconds:.0f}",
            None if x.readable_seconds is None else x.readable_seconds / 3600,
            x.landed,
            x.applied,
            x.kept,
            x.day_requests,
            x.day_cu_seconds,
            x.state,
            x.message,
        )
        for x in lines
    ]
    show("Status", (*columns, "state", "message"), rows, lines, as_json=as_json)
