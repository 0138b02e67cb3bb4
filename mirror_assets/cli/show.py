"""`mirror-assets plan`: reads logs and the landing zone; no Dagster run, and no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, note_errors, show
from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.units import count
from mirror_assets.pipeline.errors import stop_error
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.slice_source import slice_key
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import EVERYTHING, Range


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


def plan(path: Path | None, names: Sequence[str], commits: Range = EVERYTHING, *, as_json: bool) -> Exit:
    """Show the pending slices, and where a break stops a table."""
    project = compose(load_config(path))
    lines, errors, idle = list[SliceLine](), list[MirrorError](), 0
    for table in project.tables(names):
        try:
            planned = plan_table(table, requested=commits)
        except MirrorError as error:
            errors.append(error)
            continue
        lines += [_slice_line(table.name, one) for one in planned.slices]
        if planned.stop:
            note(stop_error(table.name, planned.stop).what)
        idle += not planned.slices and not planned.stop
    rows = [
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
    columns = ("table", "slice", "kind", "commits", "rows", "bytes", "parts")
    show("Pending slices", columns, rows, lines, as_json=as_json)
    if idle and not as_json:
        note(f"{count(idle, 'table')} with nothing to mirror")
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
        files=planned.compared.files if planned.compared else None,
        chunk=str(planned.chunk) if planned.chunk else None,
    )
