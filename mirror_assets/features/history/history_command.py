"""`mirror-assets history`: its options."""

from __future__ import annotations

from pathlib import Path

import click

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import configured, examples, tables, whole_number


@click.command(epilog=examples("history", "history --table sales.orders --skip-to 120"))
@tables
@click.option(
    "--skip-to",
    type=whole_number("a version of the source", 0),
    metavar="VERSION",
    help="Continue the history of one table at this version; it will lack the commits before.",
)
@configured
def history(config: Path | None, names: tuple[str, ...], skip_to: int | None, *, as_json: bool) -> Exit:
    """Append new changes to the history of each table with the setting `history`."""
    from mirror_assets.features.history.keep_histories import keep_histories

    return keep_histories(config, names, skip_to, as_json=as_json)
