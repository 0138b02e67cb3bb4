"""`mirror-assets alerts`: its options."""

from __future__ import annotations

from pathlib import Path

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
    from mirror_assets.features.alerts import test_and_mute as command_run

    return command_run.test(config, names, as_json=as_json)


@alerts.command("mute", epilog=examples('alerts mute shop.orders --for 4h --reason "its source is moved"'))
@table
@click.option("--for", "seconds", type=duration, required=True, metavar="TIME", help="How long, such as 30min, 4h, 2d.")
@click.option("--reason", default="", help="Why; `status` shows it.")
@configured
def alerts_mute(config: Path | None, name: str, seconds: float, reason: str, *, as_json: bool) -> Exit:
    """Send no messages about TABLE for a time.

    A problem that is still open then is reported. A second call replaces the first.
    """
    from mirror_assets.features.alerts import test_and_mute as command_run

    return command_run.mute(config, name, seconds, reason, as_json=as_json)


@alerts.command("unmute", epilog=examples("alerts unmute shop.orders"))
@table
@configured
def alerts_unmute(config: Path | None, name: str, *, as_json: bool) -> Exit:
    """Send messages about TABLE again."""
    from mirror_assets.features.alerts import test_and_mute as command_run

    return command_run.mute(config, name, 0.0, "", as_json=as_json)
