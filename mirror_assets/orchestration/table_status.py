"""The status of each table, from landing zone, source and mirror; for `mirror-assets status` and `mirror_status`.

It imports no Dagster, so that the command starts quickly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as NotDone
from dataclasses import dataclass, field, replace
from functools import partial

from mirror_assets.errors import NEXT, ErrorRecord, MirrorError
from mirror_assets.feature import feature_versions
from mirror_assets.landing.cost import daily_cost
from mirror_assets.landing.folders import find_orphans
from mirror_assets.landing.names import TableName
from mirror_assets.landing.problems import ProblemFile, ProblemStore, Severity
from mirror_assets.monitoring import Mirror, MonitoredTable
from mirror_assets.orchestration.units import duration
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.lag import feed_deadline, pending_commits, table_lag
from mirror_assets.pipeline.leases import has_runs, tables_mirrored_twice
from mirror_assets.pipeline.many_tables import DaemonPool, SilentStores, is_silence
from mirror_assets.pipeline.project import Project
from mirror_assets.pipeline.table_health import Urgency, read_replication, table_health


@dataclass(frozen=True)
class StatusLine:
    """What is known of a table; None for what can't be read, and then `error` says why.

    `health` is one word, and `why` explains it. The versions are those of the source that its log, the landing zone,
    the mirror and the assets of features have. `readable_seconds`: time left to read the oldest pending commit.
    `state`, `sync_latency_seconds` and `message` are the replicator's. `day_requests` and `day_cu_seconds`: the
    estimated cost of a day on OneLake, from the newest slices. `unproved_commits` and `commits_by_files`: of the
    commits that have landed in this epoch, those that the log can't prove, and those read by files because their feed
    could not be read.
    """

    table: str
    health: str
    urgency: Urgency
    why: str = ""
    source_version: int | None = None
    landed_version: int | None = None
    mirror_version: int | None = None
    feature_versions: Mapping[str, int] = field(default_factory=dict)
    lag_seconds: float | None = None
    readable_seconds: float | None = None
    landed_files: int | None = None
    applied_files: int | None = None
    state: str = "unknown"
    sync_latency_seconds: int | None = None
    message: str = ""
    error: ErrorRecord | None = None
    day_requests: int | None = None
    day_cu_seconds: int | None = None
    unproved_commits: int | None = None
    commits_by_files: int | None = None


@dataclass(frozen=True)
class Status:
    """The status of all tables: a line of each, in the file's order, notes, and errors.

    `unreadable` are those of the sources. `is_metered`: requests to the landing zone cost.
    """

    lines: tuple[StatusLine, ...]
    notes: tuple[str, ...]
    errors: tuple[MirrorError, ...]
    unreadable: tuple[MirrorError, ...]
    is_metered: bool = False

    @property
    def by_urgency(self) -> list[StatusLine]:
        """The lines, the table that matters first at the top: by urgency, then by lag."""
        return sorted(self.lines, key=lambda line: (line.urgency.rank, -(line.lag_seconds or 0.0)))


# A cell of a table of status, by its column's name; None where nothing is known.
CELLS: Mapping[str, Callable[[StatusLine], object]] = {
    "table": lambda x: x.table,
    "health": lambda x: x.health,
    "source": lambda x: x.source_version,
    "landed": lambda x: None if x.landed_version == -1 else x.landed_version,  # -1: nothing has landed
    "mirror has": lambda x: x.mirror_version,
    "lag": lambda x: None if x.lag_seconds is None else duration(x.lag_seconds),
    "readable for": lambda x: None if x.readable_seconds is None else duration(max(x.readable_seconds, 0)),
    "features": lambda x: ", ".join(f"{kind} {number}" for kind, number in x.feature_versions.items()) or None,
    "mirror": lambda x: x.state,
    "latency": lambda x: None if x.sync_latency_seconds is None else duration(x.sync_latency_seconds),
    "unproved": lambda x: x.unproved_commits or None,
    "by files": lambda x: x.commits_by_files or None,
    "why": lambda x: x.why or x.message,
    "requests a day": lambda x: x.day_requests,
    "CU s a day": lambda x: x.day_cu_seconds,
}


def read_status(project: Project, names: Sequence[str], pool: DaemonPool, limit: float | None = None) -> Status:
    """Return the status of these tables, or of all. A table that can't be read doesn't hold up the others.

    After `limit` seconds, tables without an answer are unreadable; None waits for all. If the landing zone doesn't
    respond to the first request, or its capacity is paused, none follows.
    """
    deadline = None if limit is None else time.monotonic() + limit
    problems, errors = ProblemFile(), list[MirrorError]()
    try:
        problems = ProblemStore(project.store).read()
    except MirrorError as error:
        if is_silence(error):
            return _unread(project, names, error)
        errors.append(error)
    mirror, notes = _MirrorTables.of(project), list[str]()
    if mirror.error is not None:
        errors.append(mirror.error)  # what has landed is shown all the same
    silent = SilentStores()
    tables = project.tables(names)
    reads = [pool.submit(partial(_read_table, table, mirror, silent)) for table in tables]
    lines, unreadable = list[StatusLine](), list[MirrorError]()
    for table, read in zip(tables, reads, strict=True):
        try:
            line, of_zone, of_source = read.result(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except NotDone:
            lines.append(StatusLine(str(table.name), "unreadable", Urgency.NOW, f"no answer within {limit:.0f} s"))
            continue
        lines.append(_with_problems(line, problems))
        errors += of_zone
        unreadable += of_source
    now_ms = round(time.time() * 1000)
    notes += [str(mute) for line in lines if (mute := problems.muted(line.table, now_ms))]
    if not names:
        rules = project.config.discovered.rules
        notes += [f"{rule.place}: {rule.trouble}" for rule in rules if rule.trouble]
        notes += project.config.discovered.refused
        try:
            notes += tables_mirrored_twice(project.store)
            notes += [orphan.message for orphan in find_orphans(project.store, project.config.names)]
        except MirrorError as error:
            errors.append(error)
    return Status(tuple(lines), tuple(notes), tuple(errors), tuple(unreadable), project.config.zone.is_metered)


def _unread(project: Project, names: Sequence[str], error: MirrorError) -> Status:
    """Return the status where the landing zone can't be read."""
    lines = [StatusLine(str(table.name), "unreadable", Urgency.NOW) for table in project.tables(names)]
    unread = tuple(_unreadable(line, error) for line in lines)
    return Status(unread, (), (error,), (), project.config.zone.is_metered)


@dataclass(frozen=True)
class _MirrorTables:
    """The mirror and its tables; None for both, and the error, where it could not be asked.

    `has_runs` says whether a run that mirrors tables is there.
    """

    mirror: Mirror | None
    tables: Mapping[TableName, MonitoredTable] | None
    has_runs: bool
    error: MirrorError | None = None

    @classmethod
    def of(cls, project: Project) -> _MirrorTables:
        """Ask for all tables at once."""
        try:
            runs = has_runs(project.store)
        except MirrorError:
            runs = True  # what is wrong with the landing zone is in each table's line
        try:
            mirror = project.mirror().at_once()
            return cls(mirror, {status.name: status for status in mirror.status()}, runs)
        except MirrorError as error:
            return cls(None, None, runs, error)


def _read_table(
    table: TableContext, mirror: _MirrorTables, silent: SilentStores
) -> tuple[StatusLine, list[MirrorError], list[MirrorError]]:
    """Return the table's line, and what could not be read: of landing zone or features, and of the source."""
    line = StatusLine(str(table.name), "unreadable", Urgency.NOW)
    try:
        with silent.asking(table.table, source=False):
            line = _landed(table, mirror.tables)
    except MirrorError as error:
        return _without_zone(table, _unreadable(line, error), error, silent)
    try:
        with silent.asking(table.table, source=True):
            return _with_source(table, line, mirror), [], []
    except MirrorError as error:
        return _unreadable(line, error), [], [error]


def _without_zone(
    table: TableContext, line: StatusLine, of_zone: MirrorError, silent: SilentStores
) -> tuple[StatusLine, list[MirrorError], list[MirrorError]]:
    """Return the line of a table whose landing folder can't be read, with the version of its source."""
    try:
        with silent.asking(table.table, source=True, zone=False):
            return replace(line, source_version=table.log.newest()), [of_zone], []
    except MirrorError as error:
        return line, [of_zone], [error]


def _with_problems(line: StatusLine, problems: ProblemFile) -> StatusLine:
    """Return the line with the worst open problem that checks have stored, unless the line has a worse one itself."""
    found = [one for one in problems.problems if one.subject == line.table and one.is_open]
    if not found or line.urgency is Urgency.NOW:
        return line
    worst = max(found, key=lambda one: one.severity.rank)
    is_error = worst.severity is Severity.ERROR
    if not is_error and line.urgency is Urgency.SOON:
        return line
    word, urgency = ("check fails", Urgency.NOW) if is_error else ("check warns", Urgency.SOON)
    why = f"{worst.check}: {worst.text}" + (f"{NEXT}{worst.next_step}" if worst.next_step else "")
    return replace(line, health=word, urgency=urgency, why=why)


def _landed(table: TableContext, mirrored: Mapping[TableName, MonitoredTable] | None) -> StatusLine:
    """Return the table's status without its source; `mirrored` is None if the mirror can't be read."""
    manifest, status = table.manifest(), mirrored.get(table.name) if mirrored else None
    absent = "not mirrored yet" if mirrored is not None else "unknown"
    loading = str(manifest.loading) if manifest and manifest.loading else ""
    cost = daily_cost(table.store, table.name, manifest, time.time()) if manifest else None
    return StatusLine(
        table=str(table.name),
        health="unknown",
        urgency=Urgency.NOT,
        landed_version=manifest.covered if manifest else -1,
        landed_files=manifest.next_number - 1 if manifest else 0,
        applied_files=status.applied_number if status else 0,
        state=status.state.value if status else absent,
        sync_latency_seconds=status.sync_latency_seconds if status else None,
        message=(status and status.message) or loading,
        feature_versions=feature_versions(table.config, table.table),
        day_requests=round(cost.requests) if cost else None,
        day_cu_seconds=round(cost.capacity_seconds) if cost else None,
        unproved_commits=manifest.unproved_commits if manifest else None,
        commits_by_files=manifest.commits_by_files if manifest else None,
    )


def _with_source(table: TableContext, line: StatusLine, mirror: _MirrorTables) -> StatusLine:
    """Add the source's version, lag and deadline, and the table's health. Raises what reading the log raises."""
    pending, now = pending_commits(table), time.time()
    lag, deadline = table_lag(pending, now), feed_deadline(table, pending, now)
    seen = None if mirror.mirror is None else read_replication(table, mirror.mirror, now)
    health = table_health(table, pending, seen, now, has_runs=mirror.has_runs)
    return replace(
        line,
        health=health.word,
        urgency=health.urgency,
        why=health.why,
        source_version=lag.tip,
        mirror_version=seen.version if seen else None,
        lag_seconds=round(lag.seconds, 1),
        readable_seconds=deadline.seconds_left,
    )


def _unreadable(line: StatusLine, error: MirrorError) -> StatusLine:
    """Return the line of a table of which something can't be read."""
    seen = replace(line, health="unreadable", urgency=Urgency.NOW, error=error.record(line.table))
    return replace(seen, why=error.what, message=error.what)
