"""`mirror-assets demo`: its options."""

from __future__ import annotations

from pathlib import Path

import click

from mirror_assets.cli.options import PATH, Exit, examples, printed


@click.command(epilog=examples("demo", "demo --months 3 --folder /tmp/demo"))
@click.option("--folder", type=PATH, default=".demo", help="Folder of the lake, the landing zone and the mirror.")
@click.option("--months", type=int, default=12, help="Months of flights and weather, from 2 to 12.")
@click.option("--settings", type=PATH, help="YAML file with settings, such as landing_zone, that replace the demo's.")
@printed
def demo(folder: Path, months: int, settings: Path | None, *, as_json: bool) -> Exit:
    """Build a lake with a history, mirror it, and compare mirror and source.

    Deletes only files that the demo created. Exit 1 if a check fails or a table differs.
    """
    from mirror_assets.features.demo.commands.demo_run import run_demo

    return run_demo(folder, months, settings, as_json=as_json)
