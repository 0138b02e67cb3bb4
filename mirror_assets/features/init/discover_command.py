"""`mirror-assets discover`: its options."""

from __future__ import annotations

from pathlib import Path

import click

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import configured, examples


@click.command(epilog=examples("discover", "discover --accept", "discover --json"))
@click.option("--accept", is_flag=True, help="Remove all tables that are no longer listed.")
@configured
def discover(config: Path | None, *, accept: bool, as_json: bool) -> Exit:
    """Show the tables that the rules find.

    Scans now, and shows for each folder whether it is mirrored, and if not, why. Exit 1 if a rule finds no table.
    """
    from mirror_assets.features.init import discover_run

    return discover_run.discover(config, accept=accept, as_json=as_json)
