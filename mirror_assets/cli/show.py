"""Commands that only look: no Dagster run, and Spark only to reconcile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from mirror_assets.audit.reconciled import shown
from mirror_assets.cli.exit import Exit, exit_code_of
from mirror_assets.cli.output import note, show_json, show_records
from mirror_assets.config import Config, TableSettings, load_config
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.delta.ranges import EVERYTHING, Range
from mirror_assets.errors import MirrorError
from mirror_assets.fabric.monitoring import Mirror, MonitoredTable
from mirror_assets.history.log import HistoryLog
from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.compare import reconcile_table
from mirror_assets.mirroring.errors import stop_error
from mirror_assets.mirroring.horizon import feed_horizon
from mirror_assets.mirroring.lag import table_lag
from mirror_assets.mirroring.mirrors import open_mirror
from mirror_assets.mirroring.orphans import find_orphans
from mirror_assets.mirroring.planning import plan_table
from mirror_assets.mirroring.stage import slice_key
from mirror_assets.mirroring.uncovered import look
from mirror_assets.mirroring.work import TableWork
from mirror_assets.mirroring.zone import open_exchange, open_spark, open_zone
from mirror_assets.replicator.reconciliation import ReconcileState, Reconciliation
from mirror_assets.storage import Store


@dataclass(frozen=True)
class SliceLine:
    """A pending slice as the command line shows it."""

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
    """A table as the command line shows it; `readable_seconds` are left to read the oldest commit that waits.

    `kept` is the version up to which its history goes, if it has one. `error` says why the table can't be read; what
    only the unreadable side knows is None then.
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


def plan(path: Path | None, tables: Sequence[str], asked: Range = EVERYTHING, *, as_json: bool) -> Exit:
    """Show the pending slices, and where a break stops a table."""
    config = load_config(path)
    lines, errors = list[SliceLine](), list[MirrorError]()
    for work in _works(config, tables):
        try:
            planned = plan_table(work, asked=asked)
        except MirrorError as error:
            errors.append(error)
            continue
        lines += [_slice_line(work, one) for one in planned.slices]
        if planned.stop:
            note(stop_error(work.name, planned.stop).what)
    if as_json:
        show_json(lines)
    else:
        rows = [
            (
                x.table,
                x.slice,
                f"{x.kind}, chunk {x.chunk}" if x.chunk else x.kind,
                str(x.commits),
                str(x.rows) if x.rows_exact else f"about {x.rows}",
                str(x.bytes),
                str(x.parts),
            )
            for x in lines
        ]
        show_records("Pending slices", ("table", "slice", "kind", "commits", "rows", "bytes", "parts"), rows)
    return _told(errors)


def _slice_line(work: TableWork, planned: PlannedSlice) -> SliceLine:
    kind, commits = ("snapshot", 1) if planned.is_snapshot else ("changes", planned.last - planned.first + 1)
    return SliceLine(
        table=str(work.name),
        slice=str(slice_key(planned)),
        kind="start" if planned.is_start else kind,
        commits=0 if planned.is_start else commits,
        rows=planned.rows,
        rows_exact=planned.rows_exact,
        bytes=planned.bytes,
        parts=planned.parts,
        chunk=str(planned.chunk) if planned.chunk else None,
    )


def status(path: Path | None, tables: Sequence[str], *, as_json: bool) -> Exit:
    """Show what is covered, landed and applied; it fails where a table's source can't be read."""
    config = load_config(path)
    lines, errors, unread = list[StatusLine](), list[MirrorError](), list[MirrorError]()
    store = open_zone(config.landing_zone)
    mirrored = _mirrored(open_mirror(config, store), errors)
    for work in _works(config, tables):
        try:
            lines.append(_status(work, mirrored, unread))
        except MirrorError as error:
            lines.append(_unknown(work, error))
            errors.append(error)
    if as_json:
        show_json(lines)
    else:
        _show_status(lines)
    if not tables:
        _tell_orphans(config, store, errors)
    code = _told([*errors, *unread])
    return Exit.FAILED if unread else code


def _show_status(lines: Sequence[StatusLine]) -> None:
    rows = [
        (
            x.table,
            _number(x.tip),
            _number(x.covered),
            _number(x.lag_seconds),
            "" if x.readable_seconds is None else f"{x.readable_seconds / 3600:.1f}",
            _number(x.landed),
            _number(x.applied),
            _number(x.kept),
            x.state,
            x.message,
        )
        for x in lines
    ]
    columns = (
        "table",
        "source",
        "covered",
        "lag seconds",
        "hours left",
        "landed file",
        "applied file",
        "kept",
        "state",
        "message",
    )
    show_records("Status", columns, rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def reconcile(path: Path | None, tables: Sequence[str], *, as_json: bool) -> Exit:
    """Compare mirror and source; it fails on a difference and where there is no mirror, not while files wait."""
    config = load_config(path)
    mirror = open_mirror(config, open_zone(config.landing_zone))
    results, errors = list[Reconciliation](), list[MirrorError]()
    for work in _works(config, tables):
        try:
            results.append(reconcile_table(work, mirror))
        except MirrorError as error:
            errors.append(error)
    if as_json:
        show_json(results)
    else:
        _show_reconciliations(results)
    bad = (ReconcileState.DIFFERENT, ReconcileState.MISSING, ReconcileState.STOPPED)
    code = _told(errors)
    return Exit.FAILED if any(result.state in bad for result in results) else code


def _show_reconciliations(results: Sequence[Reconciliation]) -> None:
    """One line for each table, then sample keys."""
    rows = [
        (
            result.table,
            "" if result.version < 0 else str(result.version),
            "" if result.source_rows is None else str(result.source_rows),
            "" if result.mirror_rows is None else str(result.mirror_rows),
            result.summary,
            ", ".join(result.columns),
        )
        for result in results
    ]
    columns = ("table", "version", "source rows", "mirror rows", "result", "columns that differ")
    show_records("Reconciled", columns, rows)
    for result in results:
        kept = ", ".join(result.ignored_columns)
        only = f"not compared, because only the mirror has them: {kept}" if kept else ""
        for text in (result.reason, only, *map(shown, result.samples)):
            if text:
                note(f"{result.table}: {text}")


def _tell_orphans(config: Config, store: Store, errors: list[MirrorError]) -> None:
    """Tell of tables that are no longer in mirror.yaml: they keep their folders until somebody drops them."""
    try:
        for orphan in find_orphans(store, config.names):
            note(orphan.message)
    except MirrorError as error:
        errors.append(error)


def _told(errors: Sequence[MirrorError]) -> Exit:
    """Tell the errors of tables, which kept no other table from being shown, and the exit code for them."""
    for error in errors:
        note(f"error: {error}")
    return exit_code_of(errors)


def _works(config: Config, tables: Sequence[str]) -> list[TableWork]:
    store, exchange = open_zone(config.landing_zone), open_exchange(config.landing_zone)

    def work(table: TableSettings) -> TableWork:
        spark = cache(partial(open_spark, config, str(table.name)))
        return TableWork(config, table, SourceLog(table.source), store, spark, exchange)

    return [work(table) for table in _tables(config, tables)]


def _tables(config: Config, names: Sequence[str]) -> Sequence[TableSettings]:
    return [config.table(name) for name in names] if names else config.all_tables()


def _mirrored(mirror: Mirror, errors: list[MirrorError]) -> dict[TableName, MonitoredTable] | None:
    """Every mirrored table, or None with the reason among the errors: what has landed can be told all the same."""
    try:
        return {status.name: status for status in mirror.status()}
    except MirrorError as error:
        errors.append(error)
        return None


def _status(work: TableWork, mirrored: dict[TableName, MonitoredTable] | None, unread: list[MirrorError]) -> StatusLine:
    """The table's line. Why its source can't be read goes to `unread`: what has landed is told all the same."""
    manifest, status = work.manifest(), mirrored.get(work.name) if mirrored else None
    absent = "not mirrored yet" if mirrored is not None else "unknown"
    loading = str(manifest.loading) if manifest and manifest.loading else ""
    line = StatusLine(
        table=str(work.name),
        tip=None,
        covered=manifest.covered if manifest else -1,
        lag_seconds=None,
        readable_seconds=None,
        landed=manifest.next_number - 1 if manifest else 0,
        applied=status.applied_number if status else 0,
        state=status.state.value if status else absent,
        message=(status and status.message) or loading,
        kept=_kept(work),
    )
    try:
        return _with_source(work, line)
    except MirrorError as error:
        unread.append(error)
        return replace(line, error=str(error), message=error.what)


def _with_source(work: TableWork, line: StatusLine) -> StatusLine:
    """The line with what the source's log tells. Raises what the log raises."""
    uncovered, now = look(work), time.time()
    lag, horizon = table_lag(uncovered, now), feed_horizon(work, uncovered, now)
    return replace(line, tip=lag.tip, lag_seconds=round(lag.seconds, 1), readable_seconds=horizon.seconds_left)


def _unknown(work: TableWork, error: MirrorError) -> StatusLine:
    """The line of a table of which the landing zone does not tell."""
    return StatusLine(str(work.name), None, None, None, None, None, None, "unknown", error.what, error=str(error))


def _kept(work: TableWork) -> int | None:
    """The version up to which the table's feed is kept for ever, or None."""
    if not work.table.keeps_history:
        return None
    newest = HistoryLog(str(work.name), work.config.history_folder(work.name)).newest()
    return newest.last if newest else None
