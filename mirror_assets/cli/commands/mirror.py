"""Commands that mirror tables, or change the mirror: plan, run, replicate, repair, rebuild, drop."""

from __future__ import annotations

from pathlib import Path

import click

from mirror_assets.cli.early_start import start_spark_early, waiting_rows
from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import (
    RangeOptions,
    commit_range,
    configured,
    duration,
    examples,
    require_tables,
    table,
    tables,
)

_NEW = "everything that has not landed"


@click.command(epilog=examples("plan", "plan --table sales.orders --from 120 --json"))
@tables
@commit_range(_NEW)
@configured
def plan(
    config: Path | None, names: tuple[str, ...], first: str | None, last: str | None, *, clip: bool, as_json: bool
) -> Exit:
    """Show the slices that `run` would mirror."""
    from mirror_assets.cli import show

    return show.plan(config, names, RangeOptions(first, last, clip).range, as_json=as_json)


@click.command(
    epilog=examples("run", "run --table sales.orders --to '2026-01-31 18:00:00'", "run --follow --every 10s")
)
@tables
@commit_range(_NEW)
@click.option("--follow", is_flag=True, help="Keep running, and mirror new commits, until Ctrl-C.")
@click.option(
    "--every", type=duration, default="2s", metavar="TIME", help="With --follow: how often to check for commits."
)
@configured
def run(
    config: Path | None,
    names: tuple[str, ...],
    first: str | None,
    last: str | None,
    every: float,
    *,
    clip: bool,
    follow: bool,
    as_json: bool,
) -> Exit:
    """Mirror tables until nothing is left.

    Plans, stages, checks and publishes slice by slice. A failing table doesn't stop the others. With --follow, Ctrl-C
    ends the command after the running slices, and --json prints a line for each landed slice.
    """
    if follow and (first or last or clip):
        raise click.UsageError("--follow mirrors all new commits: leave out --from, --to and --clip.")
    require_tables(config, names)
    if follow:
        start_spark_early(config, names, None)
        from mirror_assets.cli import follow as following

        return following.follow(config, names, every, as_json=as_json)
    commits = RangeOptions(first, last, clip)
    start_spark_early(config, names, lambda table: waiting_rows(table, commits.range))
    from mirror_assets.cli import execute

    return execute.run(config, names, commits, as_json=as_json)


@click.command(epilog=examples("replicate"))
@configured
def replicate(config: Path | None, *, as_json: bool) -> Exit:
    """Apply landing files with the local stand-in for Fabric.

    If Fabric itself mirrors, only show what it has applied. Exit 1 if a table has failed.
    """
    from mirror_assets.cli import execute

    return execute.replicate(config, as_json=as_json)


@click.command(epilog=examples("repair sales.orders --dry-run", "repair sales.orders --yes"))
@table
@click.option("--dry-run", is_flag=True, help="Only show what would land.")
@click.option("--yes", is_flag=True, help="Don't show it first, and don't ask for confirmation.")
@configured
def repair(config: Path | None, name: str, *, dry_run: bool, yes: bool, as_json: bool) -> Exit:
    """Land only the difference between a table's source and its mirror.

    The table stays available. The mirror must have applied everything that has landed.
    """
    from mirror_assets.cli import execute

    return execute.repair(config, name, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command(epilog=examples("rebuild sales.orders", "rebuild sales.orders --yes"))
@table
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@configured
def rebuild(config: Path | None, name: str, *, yes: bool, as_json: bool) -> Exit:
    """Drop a table's folder and load the table again.

    Shows how many rows are loaded again, and asks for confirmation. Continues an interrupted rebuild without asking.
    """
    from mirror_assets.cli import execute

    return execute.rebuild(config, name, yes=yes, as_json=as_json)


@click.command(epilog=examples("drop sales.orders", "drop sales.orders --yes"))
@table
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@configured
def drop(config: Path | None, name: str, *, yes: bool, as_json: bool) -> Exit:
    """Delete a table from landing zone and mirror.

    TABLE is a table of mirror.yaml, or one that was removed from it. Continues an interrupted drop.
    """
    from mirror_assets.cli import zone_commands

    return zone_commands.drop(config, name, yes=yes, as_json=as_json)
