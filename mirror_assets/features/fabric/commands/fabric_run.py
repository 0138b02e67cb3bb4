"""Runs `fabric`: creates and starts the mirrored database, and shows its tables. No command stops it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pydantic

from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import note, note_errors, show, show_json
from mirror_assets.composition import compose
from mirror_assets.config.load import load_config, load_section
from mirror_assets.errors import NEXT, ErrorRecord
from mirror_assets.features.fabric.database import (
    RefreshedTable,
    TargetProperties,
    create_database,
    start_mirroring,
    update_database,
)
from mirror_assets.features.fabric.errors import FABRIC_REFUSED
from mirror_assets.features.fabric.fabric_mirror import open_database, open_fabric, refresh_tables
from mirror_assets.features.fabric.fabric_settings import FabricConfig
from mirror_assets.monitoring import DatabaseState, MonitoredTable, TableState
from mirror_assets.pipeline.project import Project
from mirror_assets.pipeline.table_health import check_replication
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress, OneLakeIdentity


class _IdentityAlone(OneLakeIdentity):
    """The identity without the other settings of the landing zone, such as a URL that is not known yet."""

    model_config = pydantic.ConfigDict(extra="ignore")


@dataclass(frozen=True)
class CreatedLine:
    """The mirrored database that `fabric create` created, or found."""

    name: str
    workspace: str
    item: str
    was_there: bool


@dataclass(frozen=True)
class UpdatedLine:
    """The settings that `fabric update` was given, and those that Fabric reports otherwise."""

    workspace: str
    item: str
    retention_days: int | None
    change_data_feed: bool | None
    differences: tuple[str, ...]


@dataclass(frozen=True)
class ReplicationProblem:
    """A table's failed check `replicating`; `next_step` is empty where the message has it."""

    table: str
    is_error: bool
    message: str
    next_step: str


@dataclass(frozen=True)
class DatabaseLine:
    """A mirrored database, its state, and the problems of replication as the check `replicating` finds them.

    Fabric's state alone is not enough: it may be Running while nothing is applied.
    """

    workspace: str
    item: str
    state: DatabaseState
    message: str
    problems: tuple[ReplicationProblem, ...]
    tables: tuple[MonitoredTable, ...] = ()


def create(
    path: Path | None,
    name: str,
    workspace: UUID,
    retention_days: int | None,
    *,
    change_data_feed: bool,
    as_json: bool,
) -> Exit:
    """Create the mirrored database, or find the one of this name, before mirror.yaml has its landing zone's URL."""
    fabric = load_section(FabricConfig, ("mirror", "fabric"), path)
    identity = load_section(_IdentityAlone, ("landing_zone", "onelake"), path)
    target = TargetProperties(
        defaultSchema=fabric.default_schema,
        retentionInDays=retention_days,
        enableDeltaChangeDataFeed=change_data_feed or None,
    )
    made = create_database(open_fabric(fabric, identity, workspace), name, target)
    line = CreatedLine(made.database.name, str(workspace), str(made.database.id), made.was_there)
    rows = [(line.name, line.item, "was there already" if line.was_there else "created")]
    show("Mirrored database", ("name", "item", "result"), rows, [line], as_json=as_json)
    for difference in made.differences:
        note(f"warning: {difference}; change it with `mirror-assets fabric update`")
    if not as_json:
        zone = OneLakeAddress(line.workspace, line.item)
        note(f"Next: in mirror.yaml, set landing_zone.onelake.url to {zone.url}, and mirror.fabric, at least to {{}};")
        note("wait until `mirror-assets fabric status` shows Initialized; then run `mirror-assets fabric start`")
    return Exit.FINE


def update(path: Path | None, retention_days: int | None, *, change_data_feed: bool | None, as_json: bool) -> Exit:
    """Change the definition of the mirrored database; fails if Fabric reports other values afterwards."""
    client, tables = open_database(load_config(path))
    given = {"retentionInDays": retention_days, "enableDeltaChangeDataFeed": change_data_feed}
    wanted = TargetProperties.model_validate({name: value for name, value in given.items() if value is not None})
    differences = update_database(client, UUID(tables.item), wanted)
    line = UpdatedLine(tables.workspace, tables.item, retention_days, change_data_feed, differences)
    if as_json:
        show_json([line])
    for difference in differences:
        note(f"error: Fabric has accepted the definition, and {difference}")
    if not differences and not as_json:
        note(f"mirrored database {tables.item} has these settings")
    return Exit.FAILED if differences else Exit.FINE


def start(path: Path | None, *, replay: bool, as_json: bool) -> Exit:
    """Start mirroring, unless it is running; fails if it is running and a table is not replicated."""
    config = load_config(path)
    client, tables = open_database(config)
    item = UUID(tables.item)
    started = start_mirroring(client, item, replay=replay)
    found = client.status(item)
    problems = () if started else _problems(compose(config))
    if as_json:
        show_json([DatabaseLine(tables.workspace, tables.item, found.state, found.message or "", problems)])
    else:
        is_fine = not started and not problems
        note(f"mirrored database {item} is {found.state.value}{': nothing to do' if is_fine else ''}")
    return _note_problems(problems)


def status(path: Path | None, *, as_json: bool) -> Exit:
    """Show the mirrored database and its tables; fails if a table has failed or is not replicated."""
    config = load_config(path)
    client, place = open_database(config)
    found = client.status(UUID(place.item))
    project = compose(config)
    tables, problems = tuple(project.mirror().status()), _problems(project)
    line = DatabaseLine(place.workspace, place.item, found.state, found.message or "", problems, tables)
    rows = [
        (
            x.name,
            x.state.value,
            "present" if x.folder_present else "gone",
            x.waiting_files,
            x.processed_rows,
            f"{x.last_sync:%Y-%m-%d %H:%M:%S %Z}" if x.last_sync else None,
            x.sync_latency_seconds,
            x.message,
        )
        for x in tables
    ]
    columns = ("table", "state", "folder", "files waiting", "operations", "last sync", "latency (s)", "message")
    message = f": {line.message}" if line.message else ""
    title = f"Mirrored database {line.item} is {line.state.value}{message}"
    show(title, columns, rows, [line], as_json=as_json)
    code = _note_problems(problems)
    return Exit.FAILED if any(table.state is TableState.FAILED for table in tables) else code


@dataclass(frozen=True)
class RefreshedLine:
    """A table of the SQL endpoint after `fabric refresh`, with the error of one that was not refreshed."""

    table: str
    result: str
    last_success: str | None
    error: ErrorRecord | None

    @classmethod
    def of(cls, table: RefreshedTable) -> RefreshedLine:
        """Return the line of a table."""
        success, error = table.last_success, None
        if table.has_failed:
            refused = FABRIC_REFUSED(
                what=f"refresh {table.name} at the SQL endpoint", why=(table.message or table.status).rstrip(".")
            )
            error = refused.record(table.name)
        return cls(table.name, table.status, f"{success:%Y-%m-%d %H:%M:%S %Z}" if success else None, error)


def refresh(path: Path | None, names: Sequence[str], *, as_json: bool) -> Exit:
    """Refresh the SQL endpoint's metadata of these tables, or of all; fails if a table could not be refreshed."""
    config = load_config(path)
    refreshed = refresh_tables(config, [table.name for table in config.chosen(names)] if names else ())
    lines = list(map(RefreshedLine.of, refreshed))
    rows = [(line.table, line.result, line.last_success) for line in lines]
    show("Tables of the SQL endpoint", ("table", "result", "last success"), rows, lines, as_json=as_json)
    return note_errors(line.error for line in lines if line.error)


def _problems(project: Project) -> tuple[ReplicationProblem, ...]:
    """Return the problems of the tables in mirror.yaml. Raises what the landing zone's store raises."""
    mirror, now = project.mirror().at_once(), time.time()
    results = [(table.name, check_replication(table, mirror, now)) for table in project.tables()]
    return tuple(
        ReplicationProblem(str(name), not result.is_warning, result.message, result.next_step)
        for name, result in results
        if not result.passed
    )


def _note_problems(problems: Sequence[ReplicationProblem]) -> Exit:
    """Print the problems, those with one next step as one; return the exit code."""
    by_step: dict[tuple[bool, str], list[ReplicationProblem]] = {}
    for problem in problems:
        by_step.setdefault((problem.is_error, problem.next_step or problem.message), []).append(problem)
    for (is_error, _), (first, *others) in by_step.items():
        more = f" (and {len(others)} more {'table' if len(others) == 1 else 'tables'})" if others else ""
        step = f".{NEXT}{first.next_step}" if first.next_step else ""
        note(f"{'error' if is_error else 'warning'}: {first.table}{more}: {first.message.removesuffix('.')}{step}")
    return Exit.FAILED if any(problem.is_error for problem in problems) else Exit.FINE
