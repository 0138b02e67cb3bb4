"""`mirror-assets fabric`: makes the mirrored database, starts it, and shows its tables. Nothing stops it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_json, show_records
from mirror_assets.config import Config, FabricConfig, Problem, load_config, load_workspace
from mirror_assets.fabric.database import DatabaseState
from mirror_assets.fabric.monitoring import MonitoredTable, TableState
from mirror_assets.fabric.operate import create_database, start_mirroring
from mirror_assets.mirroring.mirrors import open_fabric, open_mirror
from mirror_assets.mirroring.zone import open_zone


@dataclass(frozen=True)
class CreatedLine:
    """A mirrored database as `fabric create` tells it."""

    name: str
    workspace: str
    item: str
    was_there: bool


@dataclass(frozen=True)
class DatabaseLine:
    """A mirrored database as `fabric status` and `fabric start` tell it."""

    workspace: str
    item: str
    state: DatabaseState
    message: str
    tables: tuple[MonitoredTable, ...] = ()


def create(path: Path | None, name: str, *, as_json: bool) -> Exit:
    """Make the mirrored database, or find the one of this name; only the workspace has to be in mirror.yaml."""
    workspace = load_workspace(path)
    made = create_database(open_fabric(workspace), name)
    line = CreatedLine(made.database.name, str(workspace.workspace), str(made.database.id), made.was_there)
    if as_json:
        show_json([line])
        return Exit.FINE
    there = "was there already" if line.was_there else "created"
    show_records("Mirrored database", ("name", "item", "result"), [(line.name, line.item, there)])
    note(f"in mirror.yaml, write {{workspace: {line.workspace}, item: {line.item}}} into landing_zone.onelake and into")
    note("mirror.fabric; then wait until `mirror-assets fabric status` shows Initialized, and run `fabric start`")
    return Exit.FINE


def start(path: Path | None, *, replay: bool, as_json: bool) -> Exit:
    """Start mirroring, unless it runs."""
    place = _place(load_config(path))
    client = open_fabric(place)
    started = start_mirroring(client, place.item, replay=replay)
    found = client.status(place.item)
    if as_json:
        show_json([DatabaseLine(str(place.workspace), str(place.item), found.state, found.message or "")])
    else:
        nothing = "" if started else ": there was nothing to do"
        note(f"mirrored database {place.item} is {found.state.value}{nothing}")
    return Exit.FINE


def status(path: Path | None, *, as_json: bool) -> Exit:
    """Show the mirrored database and its tables; it fails when a table has failed."""
    config = load_config(path)
    place = _place(config)
    found = open_fabric(place).status(place.item)
    tables = tuple(open_mirror(config, open_zone(config.landing_zone)).status())
    line = DatabaseLine(str(place.workspace), str(place.item), found.state, found.message or "", tables)
    if as_json:
        show_json([line])
    else:
        _show(line)
    return Exit.FAILED if any(table.state is TableState.FAILED for table in tables) else Exit.FINE


def _show(line: DatabaseLine) -> None:
    rows = [
        (
            str(table.name),
            table.state.value,
            "present" if table.folder_present else "gone",
            str(table.waiting_files),
            str(table.processed_rows),
            f"{table.last_sync:%Y-%m-%d %H:%M:%S %Z}" if table.last_sync else "",
            table.message or "",
        )
        for table in line.tables
    ]
    columns = ("table", "state", "folder", "files waiting", "operations", "last sync", "message")
    message = f": {line.message}" if line.message else ""
    show_records(f"Mirrored database {line.item} is {line.state.value}{message}", columns, rows)


def _place(config: Config) -> FabricConfig:
    """Where the mirrored database is. Raises ConfigInvalid where the stand-in mirrors."""
    if config.mirror.fabric is None:
        raise config.invalid((Problem("mirror.fabric", "this setting is missing: the local stand-in mirrors"),))
    return config.mirror.fabric
