"""The command line of `mirror-assets`: its options, help texts, and the functions that the commands call.

A command imports its function when it runs, so that `--help` is fast, and `plan` and `status` load no Spark.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mirror_assets.cli.early_start import source_rows, start_spark_early, waiting_rows
from mirror_assets.cli.json_log import use_json
from mirror_assets.cli.options import (
    CONFIG_HELP,
    PATH,
    CommandGroup,
    Exit,
    commit_range,
    configured,
    dry_run,
    duration,
    examples,
    table,
    tables,
)
from mirror_assets.feature import features

_NEW = "everything that has not landed"


@click.command(epilog=examples("plan", "plan sales.orders --from 120 --json"))
@tables
@commit_range(_NEW)
@configured
def plan(
    config: Path | None, names: tuple[str, ...], first: str | None, last: str | None, *, clip: bool, as_json: bool
) -> Exit:
    """Show the slices that `run` would mirror."""
    from mirror_assets.cli import show
    from mirror_assets.source.ranges import parse_range

    return show.plan(config, names, parse_range(first, last, clip=clip), as_json=as_json)


@click.command(
    epilog=examples(
        "run",
        "run 'sales.*' hr.people --dry-run",
        "run sales.orders --to '2026-01-31 18:00:00'",
        "run --follow --every 10s",
    )
)
@tables
@commit_range(_NEW)
@dry_run
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
    dry_run: bool,
    follow: bool,
    as_json: bool,
) -> Exit:
    """Mirror tables until nothing is left.

    Plans, stages, checks and publishes slice by slice. A failing table doesn't stop the others. With --follow, Ctrl-C
    ends the command after the running slices, and --json prints a line for each landed slice. --dry-run shows what
    `plan` does.
    """
    if follow and (first or last or clip or dry_run):
        raise click.UsageError("--follow mirrors all new commits: leave out --from, --to, --clip and --dry-run.")
    if dry_run:
        from mirror_assets.cli import show
        from mirror_assets.source.ranges import parse_range

        return show.plan(config, names, parse_range(first, last, clip=clip), as_json=as_json)
    if names:  # an unknown one is refused before Dagster is loaded, which takes seconds
        from mirror_assets.config.discovered import When
        from mirror_assets.config.load import load_config

        load_config(config, when=When.REFRESH).chosen(names)
    if follow:
        start_spark_early(config, names, None)
        from mirror_assets.cli import follow as following

        return following.follow(config, names, every, as_json=as_json)
    start_spark_early(config, names, lambda table: waiting_rows(table, first, last, clip=clip))
    from mirror_assets.cli import execute

    return execute.run(config, names, first, last, clip=clip, as_json=as_json)


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
@dry_run
@click.option("--yes", is_flag=True, help="Don't show it first, and don't ask for confirmation.")
@configured
def repair(config: Path | None, name: str, *, dry_run: bool, yes: bool, as_json: bool) -> Exit:
    """Land only the difference between a table's source and its mirror.

    The table stays available. The mirror must have applied everything that has landed.
    """
    from mirror_assets.cli import execute

    return execute.repair(config, name, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command(epilog=examples("rebuild sales.orders --dry-run", "rebuild sales.orders --yes"))
@table
@dry_run
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@configured
def rebuild(config: Path | None, name: str, *, dry_run: bool, yes: bool, as_json: bool) -> Exit:
    """Drop a table's folder and load the table again.

    Shows how many rows are loaded again, and asks for confirmation. Continues an interrupted rebuild without asking.
    """
    from mirror_assets.cli import execute

    return execute.rebuild(config, name, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command(epilog=examples("drop sales.orders --dry-run", "drop sales.orders --yes"))
@table
@dry_run
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@configured
def drop(config: Path | None, name: str, *, dry_run: bool, yes: bool, as_json: bool) -> Exit:
    """Delete a table from landing zone and mirror.

    TABLE is a table of mirror.yaml, or one that was removed from it. Continues an interrupted drop.
    """
    from mirror_assets.cli import setup

    return setup.drop(config, name, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command(epilog=examples("status", "status 'sales.*' --json"))
@tables
@configured
def status(config: Path | None, names: tuple[str, ...], *, as_json: bool) -> Exit:
    """Show the status of each table: health, landed version, mirrored version, lag.

    The most urgent table is first, and the last column has the reason. Fails if a source can't be read.
    """
    from mirror_assets.cli import show

    return show.status(config, names, as_json=as_json)


@click.command(epilog=examples("reconcile", "reconcile sales.orders"))
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
@click.option("--limit", type=click.IntRange(1), default=100, metavar="N", help="Maximum number of rows to show.")
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
    from mirror_assets.source.ranges import parse_range

    return show_rows.feed(config, name, parse_range(first, last, clip=clip), limit, as_json=as_json)


@click.command(epilog=examples("preview sales.orders", "preview sales.orders --limit 100 --json"))
@table
@click.option("--limit", type=click.IntRange(1), default=10, metavar="N", help="Maximum number of rows to show.")
@configured
def preview(config: Path | None, name: str, limit: int, *, as_json: bool) -> Exit:
    """Show rows of a source as they would land: filtered, masked, with computed columns.

    Checks `where` and the expressions of `columns`, and lists all their mistakes. Writes nothing.
    """
    from mirror_assets.cli import show_rows

    return show_rows.preview(config, name, limit, as_json=as_json)


@click.command(epilog=examples("check", "check sales.orders --only lag --only retention", "check --json"))
@tables
@click.option("--only", "only", multiple=True, metavar="CHECK", help="Run only this check; may be repeated.")
@configured
def check(config: Path | None, names: tuple[str, ...], only: tuple[str, ...], *, as_json: bool) -> Exit:
    """Run the asset checks now.

    Starts Spark for checks that read rows. Exit 1 if one fails with severity ERROR.
    """
    from mirror_assets.cli import execute

    return execute.check(config, names, only, as_json=as_json)


@click.command(epilog=examples("doctor", "doctor --no-spark --json", "doctor sales.orders --thorough"))
@tables
@click.option("--thorough", is_flag=True, help="Check the keys of all rows, not only of a sample.")
@click.option("--spark/--no-spark", "with_spark", default=True, help="Also test Spark, with the pipeline's settings.")
@configured
def doctor(config: Path | None, names: tuple[str, ...], *, thorough: bool, with_spark: bool, as_json: bool) -> Exit:
    """Test whether the landing zone and the sources are ready for mirroring.

    Each problem has its next step. Writes only into a scratch folder of the landing zone. Exit 1 if there is a
    problem.
    """
    from mirror_assets.cli import setup

    return setup.doctor(config, names, with_spark=with_spark, thorough=thorough, as_json=as_json)


@click.command(epilog=examples("validate", "validate --connect --json"))
@click.option("--connect", is_flag=True, help="Also open the landing zone and the sources.")
@configured
def validate(config: Path | None, *, connect: bool, as_json: bool) -> Exit:
    """Check mirror.yaml, and show the tables that it mirrors.

    Reads no other file, and needs no network, Spark, credentials or variables, so that it runs in CI. Exit 2 lists all
    mistakes. Rules of `discover` find their tables with --connect only, which requires all variables.
    """
    from mirror_assets.cli import setup

    return setup.validate(config, connect=connect, as_json=as_json)


@click.command(epilog=examples("download-jars ./jars"))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@configured
def download_jars(config: Path | None, folder: Path, *, as_json: bool) -> Exit:
    """Download the JARs that Spark needs into FOLDER.

    For machines that can't download packages: copy FOLDER there, and set `spark.jars_folder` in their mirror.yaml.
    """
    from mirror_assets.cli import setup

    return setup.download_jars(config, folder, as_json=as_json)


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
    epilog="Exit codes: 0 fine; 1 a check or a table failed; 2 the configuration or the command line is wrong.\n\n"
    "\b\nCompletion in bash; also zsh_source and fish_source:\n"
    'eval "$(_MIRROR_ASSETS_COMPLETE=bash_source mirror-assets)"',
)
@click.option(
    "--log", type=click.Choice(["text", "json"]), default="text", help="Format of messages on the error stream."
)
@click.option("--config", type=PATH, help=CONFIG_HELP)
@click.version_option(package_name="mirror-assets", message="%(prog)s %(version)s")
def app(log: str, config: Path | None) -> None:  # noqa: ARG001 the commands read it from the context
    """Mirror Delta tables into Microsoft Fabric."""
    use_json(is_on=log == "json")


@app.result_callback()
def _flush(code: Exit, **_: object) -> Exit:
    """Write all output here, where click ends the process quietly if its reader has ended (`| head`)."""
    sys.stdout.flush()
    return code


for _command in (
    *(validate, plan, run, status, reconcile, feed, preview, check, doctor, download_jars),
    *(replicate, repair, rebuild, drop),
    *(command for feature in features() for command in feature.commands()),
):
    app.add_command(_command)
