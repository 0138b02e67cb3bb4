"""Commands that show and check tables: status, feed, preview, check, reconcile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from mirror_assets.cli.early_start import source_rows, start_spark_early
from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import (
    Decorated,
    RangeOptions,
    commit_range,
    configured,
    duration,
    examples,
    table,
    tables,
    whole_number,
)


def _limit(default: str) -> Callable[[Decorated], Decorated]:
    """Return the option for the number of rows."""
    least = whole_number("a whole number from 1 on", 1)
    return click.option("--limit", type=least, default=default, metavar="N", help="Maximum number of rows to show.")


@click.command(epilog=examples("status", "status --watch", "status --table sales.orders --json"))
@tables
@click.option("--watch", is_flag=True, help="Refresh repeatedly, until Ctrl-C.")
@click.option("--every", type=duration, default="5s", metavar="TIME", help="With --watch: how often to refresh.")
@configured
def status(config: Path | None, names: tuple[str, ...], every: float, *, watch: bool, as_json: bool) -> Exit:
    """Show the status of each table: health, landed version, mirrored version, lag.

    The most urgent table is first, and the last column has the reason. Exit 1 if a source can't be read.
    """
    from mirror_assets.cli import status

    if watch:
        if as_json:
            raise click.UsageError("--watch prints no JSON: leave out --json.")
        return status.watch(config, names, every)
    return status.status(config, names, as_json=as_json)


@click.command(epilog=examples("reconcile", "reconcile --table sales.orders"))
@tables
@configured
def reconcile(config: Path | None, names: tuple[str, ...], *, as_json: bool) -> Exit:
    """Compare the mirror with its source.

    Reads all rows of both, at the mirror's version. Exit 1 if they differ.
    """
    start_spark_early(config, names, source_rows)
    from mirror_assets.cli import show_rows

    return show_rows.reconcile(config, names, as_json=as_json)


@click.command(epilog=examples("feed sales.orders", "feed sales.orders --from 120 --to 125 --limit 1000"))
@table
@commit_range("the newest commit")
@_limit("100")
@configured
def feed(
    config: Path | None,
    name: str,
    first: str | None,
    last: str | None,
    limit: int,
    *,
    clip: bool,
    as_json: bool,
) -> Exit:
    """Show changed rows of a source by version, from its change data feed or by row tracking."""
    from mirror_assets.cli import show_rows

    return show_rows.feed(config, name, RangeOptions(first, last, clip).range, limit, as_json=as_json)


@click.command(epilog=examples("preview sales.orders", "preview sales.orders --limit 100 --json"))
@table
@_limit("10")
@configured
def preview(config: Path | None, name: str, limit: int, *, as_json: bool) -> Exit:
    """Show rows of a source as they would land: filtered, masked, with computed columns.

    Checks `where` and the expressions of `columns`, and lists all their mistakes. Writes nothing.
    """
    from mirror_assets.cli import show_rows

    return show_rows.preview(config, name, limit, as_json=as_json)


@click.command(epilog=examples("check", "check --table sales.orders --only lag --only retention", "check --json"))
@tables
@click.option("--only", "only", multiple=True, metavar="CHECK", help="Run only this check; may be repeated.")
@configured
def check(config: Path | None, names: tuple[str, ...], only: tuple[str, ...], *, as_json: bool) -> Exit:
    """Run the asset checks now.

    Starts Spark for checks that read rows. Exit 1 if one fails with severity ERROR.
    """
    from mirror_assets.cli import execute

    return execute.check(config, names, only, as_json=as_json)
