"""`mirror-assets status`: how each table is, the one that matters first at the top; no Dagster run, and no Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from mirror_assets.cli.exit import Exit, exit_code
from mirror_assets.cli.output import as_table, note, note_errors, show_json, show_table
from mirror_assets.composition import Project
from mirror_assets.config import load_config
from mirror_assets.errors import MirrorError
from mirror_assets.fabric.monitoring import MonitoredTable, WatchedMirror
from mirror_assets.history.history_log import HistoryLog
from mirror_assets.landing.cost import daily_cost
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.drop import find_orphans
from mirror_assets.pipeline.look_at_mirror import look_at_mirror
from mirror_assets.pipeline.pending import feed_deadline, pending_commits, table_lag
from mirror_assets.pipeline.table_health import Urgency, table_health


@dataclass(frozen=True)
class StatusLine:
    """What is known of a table; None for what can't be read, and then `error` says why.

    `health` is how it is, in a word, and `why` says it in a sentence. `mirrored` is the version of the source that the
    mirror has. `readable_seconds`: time left to read the oldest waiting commit. `kept`: the version up to which its
    history goes. `state` and `message` are the replicator's. `day_requests` and `day_cu_seconds`: what a day of it
    costs on OneLake, as estimated from its newest slices.
    """

    table: str
    health: str
    urgency: Urgency
    why: str = ""
    tip: int | None = None
    covered: int | None = None
    mirrored: int | None = None
    lag_seconds: float | None = None
    readable_seconds: float | None = None
    landed: int | None = None
    applied: int | None = None
    state: str = "unknown"
    message: str = ""
    kept: int | None = None
    error: str | None = None
    day_requests: int | None = None
    day_cu_seconds: int | None = None


@dataclass(frozen=True)
class Status:
    """One look at all tables: a line of each, in the file's order, notes, and errors.

    `unreadable` are those of the sources. `in_onelake`: the landing zone is where requests cost.
    """

    lines: tuple[StatusLine, ...]
    notes: tuple[str, ...]
    errors: tuple[MirrorError, ...]
    unreadable: tuple[MirrorError, ...]
    in_onelake: bool = False

    @property
    def code(self) -> Exit:
        """The exit code: it fails if a source can't be read."""
        return Exit.FAILED if self.unreadable else exit_code(error.family for error in self.errors)

    @property
    def by_urgency(self) -> list[StatusLine]:
        """The lines, the table that matters first at the top: by urgency, then by lag."""
        return sorted(self.lines, key=lambda line: (line.urgency.rank, -(line.lag_seconds or 0.0)))


def status(path: Path | None, names: Sequence[str], *, as_json: bool) -> Exit:
    """Show how the tables are; it fails if a source can't be read."""
    found = look(Project.of(load_config(path)), names)
    if as_json:
        show_json(found.lines)
    else:
        show_table(_table(found, "Status"))
    for text in found.notes:
        note(text)
    note_errors([*found.errors, *found.unreadable])
    return found.code


def watch(path: Path | None, names: Sequence[str], every: float) -> Exit:
    """Show how the tables are, again and again, until it is interrupted; the settings are read anew each time."""
    found: Status | None = None
    console = Console(highlight=False, emoji=False)
    try:
        with Live(console=console, auto_refresh=False, screen=sys.stdout.isatty()) as live:
            while True:
                found = look(Project.of(load_config(path)), names)
                table = _table(found, f"Status, {time.strftime('%H:%M:%S')}; Ctrl-C ends")
                if sys.stdout.isatty():
                    live.update(table, refresh=True)
                else:
                    show_table(table)
                time.sleep(every)
    except KeyboardInterrupt:
        return Exit.FINE if found is None else found.code


def look(project: Project, names: Sequence[str]) -> Status:
    """Read how these tables are, or all; what can't be read does not hold up the others."""
    mirror, mirrored = project.mirror().at_once(), None
    lines, notes, errors, unreadable = list[StatusLine](), list[str](), list[MirrorError](), list[MirrorError]()
    try:
        mirrored = {status.name: status for status in mirror.status()}
    except MirrorError as error:  # what has landed is shown all the same
        errors.append(error)
    for table in project.tables(names):
        try:
            line = _landed(table, mirrored)
        except MirrorError as error:
            lines.append(_unreadable(StatusLine(str(table.name), "unreadable", Urgency.NOW), error))
            errors.append(error)
            continue
        try:
            lines.append(_with_source(table, line, None if mirrored is None else mirror))
        except MirrorError as error:
            lines.append(_unreadable(line, error))
            unreadable.append(error)
    if not names:
        try:
            notes += [orphan.message for orphan in find_orphans(project.store, project.config.names)]
        except MirrorError as error:
            errors.append(error)
    in_onelake = project.config.landing_zone.onelake is not None
    return Status(tuple(lines), tuple(notes), tuple(errors), tuple(unreadable), in_onelake)


def _landed(table: TableContext, mirrored: dict[TableName, MonitoredTable] | None) -> StatusLine:
    """Return what landing zone, mirror and history tell of the table; `mirrored` is None where the mirror doesn't."""
    manifest, status = table.manifest(), mirrored.get(table.name) if mirrored else None
    absent = "not mirrored yet" if mirrored is not None else "unknown"
    loading = str(manifest.loading) if manifest and manifest.loading else ""
    cost = drive(daily_cost(table.name, manifest, time.time()), table.store) if manifest else None
    return StatusLine(
        table=str(table.name),
        health="unknown",
        urgency=Urgency.NOT,
        covered=manifest.covered if manifest else -1,
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


def _with_source(table: TableContext, line: StatusLine, mirror: WatchedMirror | None) -> StatusLine:
    """Add what the source's log tells, and how the table is. Raises what reading the log raises."""
    pending, now = pending_commits(table), time.time()
    lag, deadline = table_lag(pending, now), feed_deadline(table, pending, now)
    seen = None if mirror is None else look_at_mirror(table, mirror, now)
    health = table_health(table, pending, seen, now)
    return replace(
        line,
        health=health.word,
        urgency=health.urgency,
        why=health.why,
        tip=lag.tip,
        mirrored=seen.version if seen else None,
        lag_seconds=round(lag.seconds, 1),
        readable_seconds=deadline.seconds_left,
    )


def _unreadable(line: StatusLine, error: MirrorError) -> StatusLine:
    """Return the line of a table of which something can't be read."""
    return replace(line, health="unreadable", urgency=Urgency.NOW, why=error.what, message=error.what, error=str(error))


_STYLES = {Urgency.NOW: "red", Urgency.SOON: "yellow", Urgency.NOT: "green"}
_COLUMNS = ("table", "health", "source", "landed", "mirror has", "lag seconds", "hours left", "kept", "mirror", "why")
_COST = ("requests a day", "CU s a day")


def _table(found: Status, title: str) -> Table:
    lines = found.by_urgency
    rows = [
        (
            x.table,
            x.health,
            x.tip,
            None if x.covered == -1 else x.covered,  # nothing has landed
            x.mirrored,
            None if x.lag_seconds is None else f"{x.lag_seconds:.0f}",
            None if x.readable_seconds is None else x.readable_seconds / 3600,
            x.kept,
            x.state,
            x.why or x.message,
            *((x.day_requests, x.day_cu_seconds) if found.in_onelake else ()),
        )
        for x in lines
    ]
    return as_table(
        title, (*_COLUMNS, *(_COST if found.in_onelake else ())), rows, [_STYLES[line.urgency] for line in lines]
    )
