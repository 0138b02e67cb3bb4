"""Commands for the services around the mirror: alerts and fabric."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import click

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import configured, duration, examples, table


@click.group(epilog=examples("alerts test", "alerts mute shop.orders --for 4h"))
def alerts() -> None:
    """Send a test alert; mute a table for a time."""


@alerts.command("test", epilog=examples("alerts test", "alerts test --receiver team --json"))
@click.option("--receiver", "names", multiple=True, metavar="NAME", help="Test only this receiver; may be repeated.")
@configured
def alerts_test(config: Path | None, names: tuple[str, ...], *, as_json: bool) -> Exit:
    """Send a test message to each receiver.

    Exit 1 if a receiver doesn't accept it.
    """
    from mirror_assets.cli import alerts

    return alerts.test(config, names, as_json=as_json)


@alerts.command("mute", epilog=examples('alerts mute shop.orders --for 4h --reason "its source is moved"'))
@table
@click.option("--for", "seconds", type=duration, required=True, metavar="TIME", help="How long, such as 30min, 4h, 2d.")
@click.option("--reason", default="", help="Why; `status` shows it.")
@configured
def alerts_mute(config: Path | None, name: str, seconds: float, reason: str, *, as_json: bool) -> Exit:
    """Send no messages about TABLE for a time.

    A problem that is still open then is reported. A second call replaces the first.
    """
    from mirror_assets.cli import alerts

    return alerts.mute(config, name, seconds, reason, as_json=as_json)


@alerts.command("unmute", epilog=examples("alerts unmute shop.orders"))
@table
@configured
def alerts_unmute(config: Path | None, name: str, *, as_json: bool) -> Exit:
    """Send messages about TABLE again."""
    from mirror_assets.cli import alerts

    return alerts.mute(config, name, 0.0, "", as_json=as_json)


@click.group(epilog=examples("fabric create sales --workspace GUID", "fabric start", "fabric status --json"))
def fabric() -> None:
    """Create, start and show the mirrored database in Fabric.

    No command stops it, on purpose: an open mirror that is stopped and started again replays all files from the first
    landing file.
    """


@fabric.command(epilog=examples("fabric create sales --workspace 11111111-2222-3333-4444-555555555555"))
@click.argument("name")
@click.option("--workspace", type=click.UUID, required=True, metavar="GUID", help="The workspace's GUID.")
@click.option(
    "--retention-days",
    type=click.IntRange(1, 30),
    help="How many days Fabric retains old files of the mirrored tables.  [default: Fabric's]",
)
@click.option("--change-data-feed", is_flag=True, help="Enable change data feeds on the mirrored tables; Fabric bills.")
@configured
def create(
    config: Path | None,
    name: str,
    workspace: UUID,
    retention_days: int | None,
    *,
    change_data_feed: bool,
    as_json: bool,
) -> Exit:
    """Create or find the mirrored database NAME; show its landing zone.

    Reads mirror.fabric from mirror.yaml, and nothing else.
    """
    from mirror_assets.cli import fabric

    return fabric.create(config, name, workspace, retention_days, change_data_feed=change_data_feed, as_json=as_json)


@fabric.command(epilog=examples("fabric start"))
@click.option("--replay", is_flag=True, help="Also start one that was stopped: Fabric reads from file 1 again.")
@configured
def start(config: Path | None, *, replay: bool, as_json: bool) -> Exit:
    """Start mirroring.

    Does nothing if it is running. Exit 1 if it is running and applies nothing.
    """
    from mirror_assets.cli import fabric

    return fabric.start(config, replay=replay, as_json=as_json)


@fabric.command("status", epilog=examples("fabric status --json"))
@configured
def fabric_status(config: Path | None, *, as_json: bool) -> Exit:
    """Show the mirrored database and its tables.

    Exit 1 if a table has failed, or files wait too long.
    """
    from mirror_assets.cli import fabric

    return fabric.status(config, as_json=as_json)
