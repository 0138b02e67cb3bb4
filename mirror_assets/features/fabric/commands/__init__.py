"""Commands for the mirrored database in Fabric."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import click

from mirror_assets.cli.options import PATH, CommandGroup, Exit, configured, duration, examples, tables

_RETENTION = "How many days Fabric retains old files of the mirrored tables."
_FEED = "Change data feeds on the mirrored tables, for which Fabric bills."


def _exercise(name: str) -> str:
    from mirror_assets.features.fabric.accept.exercises import EXERCISES

    known = [one.name for one in EXERCISES]
    if name not in known:
        raise click.BadParameter(f"expected one of {', '.join(known)}, got {name!r}")
    return name


@click.group(
    cls=CommandGroup,
    epilog=examples("fabric create sales --workspace 11111111-2222-3333-4444-555555555555", "fabric start"),
)
def fabric() -> None:
    """Create, operate and test the mirrored database in Fabric.

    No command stops it, on purpose: an open mirror that is stopped and started again replays all files from the first
    landing file. Only `accept` does, in a database without other tables.
    """


@fabric.command(epilog=examples("fabric create sales --workspace 11111111-2222-3333-4444-555555555555"))
@click.argument("database", metavar="NAME")
@click.option("--workspace", type=click.UUID, required=True, metavar="GUID", help="The workspace's GUID.")
@click.option(
    "--retention-days",
    type=click.IntRange(1, 30),
    help=f"{_RETENTION}  [default: Fabric's]",
)
@click.option("--change-data-feed", is_flag=True, help=_FEED)
@configured
def create(
    config: Path | None,
    database: str,
    workspace: UUID,
    retention_days: int | None,
    *,
    change_data_feed: bool,
    as_json: bool,
) -> Exit:
    """Create or find the mirrored database NAME; show its landing zone.

    Reads mirror.fabric from mirror.yaml, and credential and ca_bundle of landing_zone.onelake. Nothing else needs to be
    set yet.
    """
    from mirror_assets.features.fabric.commands import fabric_run

    return fabric_run.create(
        config, database, workspace, retention_days, change_data_feed=change_data_feed, as_json=as_json
    )


@fabric.command(epilog=examples("fabric update --retention-days 7", "fabric update --no-change-data-feed"))
@click.option("--retention-days", type=click.IntRange(1, 30), help=_RETENTION)
@click.option("--change-data-feed/--no-change-data-feed", default=None, help=_FEED)
@configured
def update(config: Path | None, retention_days: int | None, *, change_data_feed: bool | None, as_json: bool) -> Exit:
    """Change settings of the mirrored database that mirror.yaml names; all else of its definition is unchanged."""
    if retention_days is None and change_data_feed is None:
        raise click.UsageError("Give --retention-days, --change-data-feed or --no-change-data-feed.")
    from mirror_assets.features.fabric.commands import fabric_run

    return fabric_run.update(config, retention_days, change_data_feed=change_data_feed, as_json=as_json)


@fabric.command(epilog=examples("fabric start"))
@click.option("--replay", is_flag=True, help="Also start one that was stopped: Fabric reads from file 1 again.")
@configured
def start(config: Path | None, *, replay: bool, as_json: bool) -> Exit:
    """Start mirroring.

    Does nothing if it is running. Exit 1 if it is running and applies nothing.
    """
    from mirror_assets.features.fabric.commands import fabric_run

    return fabric_run.start(config, replay=replay, as_json=as_json)


@fabric.command("status", epilog=examples("fabric status --json"))
@configured
def fabric_status(config: Path | None, *, as_json: bool) -> Exit:
    """Show the mirrored database and its tables.

    Exit 1 if a table has failed, or files wait too long.
    """
    from mirror_assets.features.fabric.commands import fabric_run

    return fabric_run.status(config, as_json=as_json)


@fabric.command(epilog=examples("fabric refresh", "fabric refresh sales.orders --json"))
@tables
@configured
def refresh(config: Path | None, names: tuple[str, ...], *, as_json: bool) -> Exit:
    """Bring the SQL endpoint up to date with the mirrored tables.

    Without a table, all tables of the endpoint. Exit 1 if one could not be refreshed.
    """
    from mirror_assets.features.fabric.commands import fabric_run

    return fabric_run.refresh(config, names, as_json=as_json)


@fabric.command(epilog=examples("fabric accept --list", "fabric accept --report reports", "fabric accept --only gap"))
@click.option("--only", multiple=True, type=_exercise, metavar="EXERCISE", help="Only this exercise; may be repeated.")
@click.option("--list", "lists", is_flag=True, help="Show the exercises, and run none.")
@click.option("--wait", type=duration, default="10min", show_default=True, help="Longest wait of each step.")
@click.option("--report", type=PATH, metavar="FOLDER", help="Write a report as Markdown and JSON, without secrets.")
@click.option("--keep", is_flag=True, help="Keep the tables, to try the printed SQL statements.")
@click.option("--clean", is_flag=True, help="Only delete what former runs have left.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@configured
def accept(config: Path | None, *, lists: bool, clean: bool, as_json: bool, **options: object) -> Exit:
    """Test by exercises how Fabric applies landing files.

    Each has tables of its own, which are deleted at the end. Exit 1 if Fabric does something else than expected.
    """
    from mirror_assets.features.fabric.commands import accept_run

    if lists:
        return accept_run.list_exercises(as_json=as_json)
    if clean:
        return accept_run.clean(config, yes=bool(options["yes"]))
    return accept_run.accept(config, **options, as_json=as_json)  # type: ignore[arg-type]
