"""Runs `plan` and `status`: reads logs and the landing zone; without a Dagster run, and without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import as_table, console, note, note_errors, print_table, show, show_json
from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.docs_links import task_link
from mirror_assets.errors import ErrorRecord, MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.table_status import CELLS, Status, read_status
from mirror_assets.orchestration.units import count
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import stop_error
from mirror_assets.pipeline.many_tables import DaemonPool
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.slice_source import slice_key
from mirror_assets.pipeline.table_health import Urgency
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import EVERYTHING, Range
from mirror_assets.zones.unreachable import UnreachableStore

_TABLES_AT_ONCE = 16


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
    files: int | None = None
    chunk: str | None = None


@dataclass(frozen=True)
class UnplannedLine:
    """A table that can't be planned, and why; without a landing zone, with the newest version of its source."""

    table: str
    source_version: int | None
    error: ErrorRecord

    @classmethod
    def of(cls, table: TableContext, error: MirrorError) -> UnplannedLine:
        """Return the line; the source is read where it isn't what the error is about."""
        known: int | None = None
        if isinstance(table.store, UnreachableStore):
            with suppress(MirrorError):
                known = table.log.newest()
        return cls(str(table.name), known, error.record(str(table.name)))


@dataclass(frozen=True)
class StopLine:
    """The commit after which a table can't be followed, and the reason: `run` rebuilds or stops there."""

    table: str
    stop: ErrorRecord


def plan(path: Path | None, names: Sequence[str], commits: Range = EVERYTHING, *, as_json: bool) -> Exit:
    """Show the pending slices, and where a break stops a table."""
    project = compose(load_config(path, is_partial=True), needs_zone=False)
    lines, stops, unplanned, idle = list[SliceLine](), list[StopLine](), list[UnplannedLine](), 0
    for table in project.tables(names):
        try:
            planned = plan_table(table, requested=commits)
        except MirrorError as error:
            unplanned.append(UnplannedLine.of(table, error))
            continue
        lines += [_slice_line(table.name, one) for one in planned.slices]
        if planned.stop:
            stops.append(StopLine(str(table.name), stop_error(table.name, planned.stop).record(str(table.name))))
            note(stops[-1].stop.message)
        idle += not planned.slices and not planned.stop
    rows: list[tuple[object, ...]] = [
        (
            x.table,
            x.slice,
            f"{x.kind}, chunk {x.chunk}" if x.chunk else x.kind if x.files is None else f"{x.kind} by {x.files} files",
            x.commits,
            x.rows if x.rows_exact else f"about {x.rows}",
            x.bytes,
            x.parts,
        )
        for x in lines
    ]
    rows += [
        (x.table, "unknown", "" if x.source_version is None else f"source at {x.source_version}", *[None] * 4)
        for x in unplanned
    ]
    columns = ("table", "slice", "kind", "commits", "rows", "bytes", "parts")
    show("Pending slices", columns, rows, [*lines, *stops, *unplanned], as_json=as_json)
    if idle and not as_json:
        note(f"{count(idle, 'table')} with nothing to mirror")
    return note_errors(line.error for line in unplanned)


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
        files=planned.compared.files if planned.compared else None,
        chunk=str(planned.chunk) if planned.chunk else None,
    )


def status(path: Path | None, names: Sequence[str], *, as_json: bool) -> Exit:
    """Show the status of the tables, also of those of which something can't be read; fails then."""
    project = compose(load_config(path, is_partial=True), needs_zone=False)
    found = read_status(project, names, DaemonPool("status", _TABLES_AT_ONCE))
    shown = [line.error for line in found.lines if line.error]
    known = {error.message for error in shown}
    others = [error.record() for error in (*found.errors, *found.unreadable) if error.what not in known]
    if as_json:
        show_json(found.lines, others)
    else:
        print_table(_table(found))
    for text in found.notes:
        note(text)
    if any(line.urgency is not Urgency.NOT for line in found.lines):
        note(f"what to do: {task_link('late-table')}")
    return note_errors([*shown, *others])


_STYLES = {Urgency.NOW: "red", Urgency.SOON: "yellow", Urgency.NOT: "green"}
# The columns of a narrow terminal, and those that a wide one adds unless they are empty.
_ALWAYS = ("table", "health", "source", "landed", "lag", "why")
_WITH_ROOM = frozenset({"mirror has", "readable for", "features", "mirror", "latency", "unproved", "by files"})
_COST = frozenset({"requests a day", "CU s a day"})
_ROOMY = 120


def _table(found: Status) -> Table:
    lines = found.by_urgency
    cells = [{name: cell(line) for name, cell in CELLS.items()} for line in lines]
    more = _WITH_ROOM | (_COST if found.is_metered else frozenset()) if console().width >= _ROOMY else frozenset()
    filled = {name for row in cells for name, value in row.items() if value is not None}
    columns = [name for name in CELLS if name in _ALWAYS or name in more & filled]
    rows = [[row[name] for name in columns] for row in cells]
    return as_table("Status", columns, rows, [_STYLES[line.urgency] for line in lines])
