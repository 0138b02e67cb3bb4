"""The commands of `mirror-assets`, except direct-lake: options, help texts, and the functions that they call.

A command imports its function when it runs, so that `--help` is fast, and `plan` and `status` load no Spark.
"""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import UUID

import click

from mirror_assets.cli.early_start import start_spark_early
from mirror_assets.cli.exit import Exit
from mirror_assets.cli.json_log import use_json
from mirror_assets.cli.options import (
    CONFIG_HELP,
    PATH,
    CatalogOptions,
    RangeOptions,
    catalog,
    check_name,
    commit_range,
    configured,
    duration,
    examples,
    printed,
    require_tables,
    store,
    table,
    tables,
    whole_number,
)
from mirror_assets.direct_lake.commands import direct_lake

_NEW = "everything that has not landed"


class _InOrder(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 click's signature
        """Return the commands in the order of this file, not of the alphabet."""
        return list(self.commands)


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
    epilog="\b\nExit codes: 0 fine; 1 a check or a table failed; 2 the configuration or the command line is wrong.\n"
    'Completion in bash: eval "$(_MIRROR_ASSETS_COMPLETE=bash_source mirror-assets)"; also zsh_source, fish_source.',
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


@app.command(epilog=examples("demo", "demo --months 3 --folder /tmp/demo"))
@click.option("--folder", type=PATH, default=".demo", help="Folder of the lake, the landing zone and the mirror.")
@click.option("--months", type=int, default=12, help="Months of flights and weather, from 2 to 12.")
@click.option("--settings", type=PATH, help="YAML file with settings, such as landing_zone, that replace the demo's.")
@printed
def demo(folder: Path, months: int, settings: Path | None, *, as_json: bool) -> Exit:
    """Build a lake with a history, mirror it, and compare mirror and source.

    Deletes only files that the demo created. Exit 1 if a check fails or a table differs.
    """
    from mirror_assets.cli import demo

    return demo.demo(folder, months, settings, as_json=as_json)


@app.command(
    epilog=examples(
        "init ./lake",
        "init s3://acme-lake/sales --credential environment --region eu-central-1",
        "init 'abfss://<workspace>@onelake.dfs.fabric.microsoft.com/<lakehouse>/Tables' --credential client_secret",
        "init https://host --catalog main --schema 'sales*' --token-variable UC_TOKEN",
        "init spark --catalog spark_catalog --spark-setting spark.sql.catalogImplementation=hive",
    )
)
@click.argument("lake")
@click.option("--out", "file", type=PATH, default="mirror.yaml", help="File to write.")
@click.option(
    "--sql", type=PATH, help="File for the missing SQL statements.  [default: the name of the other file, with .sql]"
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option(
    "--depth",
    type=whole_number("a number from 1 to 9", 1, 9),
    default="3",
    help="Levels of folders below LAKE to scan.",
)
@click.option("--no-spark", is_flag=True, help="Don't prove keys; propose them by names and statistics only.")
@store
@catalog
@printed
def init(lake: str, file: Path, sql: Path | None, depth: int, *, as_json: bool, **options: object) -> Exit:
    """Write a mirror.yaml for the Delta tables of LAKE.

    LAKE is a folder, a store's address, or with --catalog the server of a Unity Catalog, or `spark`. Proposes keys,
    and proves them with Spark. Writes ALTER TABLE statements for disabled features, such as the change data feed, into
    an SQL file, and runs none of them. Exit 1 if no table can be mirrored yet.
    """
    from mirror_assets.cli import init as initial

    force, without = bool(options.pop("force")), bool(options.pop("no_spark"))
    of_catalog = CatalogOptions.taken_from(options)
    request = initial.InitRequest(lake, options, of_catalog, depth, file, sql, force, not without)
    return initial.init(request, as_json=as_json)


@app.command(epilog=examples("plan", "plan --table sales.orders --from 120 --json"))
@tables
@commit_range(_NEW)
@configured
def plan(
    config: Path | None, names: tuple[str, ...], first: str | None, last: str | None, *, clip: bool, as_json: bool
) -> Exit:
    """Show the slices that `run` would mirror."""
    from mirror_assets.cli import show

    return show.plan(config, names, RangeOptions(first, last, clip).range, as_json=as_json)


@app.command(epilog=examples("run", "run --table sales.orders --to '2026-01-31 18:00:00'", "run --follow --every 10s"))
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
    start_spark_early(config, names, lambda: commits.range)
    from mirror_assets.cli import execute

    return execute.run(config, names, commits, as_json=as_json)


@app.command(epilog=examples("discover", "discover --accept", "discover --json"))
@click.option("--accept", is_flag=True, help="Remove all tables that are no longer listed.")
@configured
def discover(config: Path | None, *, accept: bool, as_json: bool) -> Exit:
    """Show the tables that the rules find.

    Scans now, and shows for each folder whether it is mirrored, and if not, why. Exit 1 if a rule finds no table.
    """
    from mirror_assets.cli import discover

    return discover.discover(config, accept=accept, as_json=as_json)


@app.command(epilog=examples("status", "status --watch", "status --table sales.orders --json"))
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


@app.command(epilog=examples("reconcile", "reconcile --table sales.orders"))
@tables
@configured
def reconcile(config: Path | None, names: tuple[str, ...], *, as_json: bool) -> Exit:
    """Compare the mirror with its source.

    Reads all rows of both, at the mirror's version. Exit 1 if they differ.
    """
    from mirror_assets.cli import show_rows

    return show_rows.reconcile(config, names, as_json=as_json)


@app.command(epilog=examples("feed sales.orders", "feed sales.orders --from 120 --to 125 --limit 1000"))
@table
@commit_range("the newest commit")
@click.option(
    "--limit",
    type=whole_number("a whole number from 1 on", 1),
    default="100",
    metavar="N",
    help="Maximum number of rows to show.",
)
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


@app.command(epilog=examples("history", "history --table sales.orders --skip-to 120"))
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
    from mirror_assets.cli import execute

    return execute.history(config, names, skip_to, as_json=as_json)


@app.command(epilog=examples("check", "check --table sales.orders --only lag --only retention", "check --json"))
@tables
@click.option(
    "--only", "only", multiple=True, type=check_name, metavar="CHECK", help="Run only this check; may be repeated."
)
@configured
def check(config: Path | None, names: tuple[str, ...], only: tuple[str, ...], *, as_json: bool) -> Exit:
    """Run the asset checks now.

    Starts Spark for checks that read rows. Exit 1 if one fails with severity ERROR.
    """
    from mirror_assets.cli import execute

    return execute.check(config, names, only, as_json=as_json)


@app.command(epilog=examples("doctor", "doctor --no-spark --json", "doctor --table sales.orders --thorough"))
@tables
@click.option("--thorough", is_flag=True, help="Check the keys of all rows, not only of a sample.")
@click.option("--spark/--no-spark", "with_spark", default=True, help="Also test Spark, with the pipeline's settings.")
@configured
def doctor(config: Path | None, names: tuple[str, ...], *, thorough: bool, with_spark: bool, as_json: bool) -> Exit:
    """Test whether the landing zone and the sources are ready for mirroring.

    Each problem has its next step. Writes only into a scratch folder of the landing zone. Exit 1 if there is a
    problem.
    """
    from mirror_assets.cli import doctor
    from mirror_assets.pipeline.doctor.examination import Depth

    return doctor.doctor(config, names, Depth(with_spark, thorough), as_json=as_json)


@app.command(epilog=examples("download-jars ./jars"))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@configured
def download_jars(config: Path | None, folder: Path, *, as_json: bool) -> Exit:
    """Download the JARs that Spark needs into FOLDER.

    For machines that can't download packages: copy FOLDER there, and set `spark.jars_folder` in their mirror.yaml.
    """
    from mirror_assets.cli import download_jars as downloading

    return downloading.download_jars(config, folder, as_json=as_json)


@app.command(epilog=examples("replicate"))
@configured
def replicate(config: Path | None, *, as_json: bool) -> Exit:
    """Apply landing files with the local stand-in for Fabric.

    If Fabric itself mirrors, only show what it has applied. Exit 1 if a table has failed.
    """
    from mirror_assets.cli import execute

    return execute.replicate(config, as_json=as_json)


@app.command(epilog=examples("rebuild sales.orders", "rebuild sales.orders --yes"))
@table
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@configured
def rebuild(config: Path | None, name: str, *, yes: bool, as_json: bool) -> Exit:
    """Drop a table's folder and load the table again.

    Shows how many rows are loaded again, and asks for confirmation. Continues an interrupted rebuild without asking.
    """
    from mirror_assets.cli import execute

    return execute.rebuild(config, name, yes=yes, as_json=as_json)


@app.command(epilog=examples("drop sales.orders", "drop sales.orders --yes"))
@table
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@configured
def drop(config: Path | None, name: str, *, yes: bool, as_json: bool) -> Exit:
    """Delete a table from landing zone and mirror.

    TABLE is a table of mirror.yaml, or one that was removed from it. Continues an interrupted drop.
    """
    from mirror_assets.cli import zone

    return zone.drop(config, name, yes=yes, as_json=as_json)


@app.group(epilog=examples("alerts test"))
def alerts() -> None:
    """Send a test alert."""


@alerts.command("test", epilog=examples("alerts test", "alerts test --receiver team --json"))
@click.option("--receiver", "names", multiple=True, metavar="NAME", help="Test only this receiver; may be repeated.")
@configured
def alerts_test(config: Path | None, names: tuple[str, ...], *, as_json: bool) -> Exit:
    """Send a test message to each receiver.

    Exit 1 if a receiver doesn't accept it.
    """
    from mirror_assets.cli import alerts

    return alerts.test(config, names, as_json=as_json)


@app.group(epilog=examples("fabric create sales --workspace GUID", "fabric start", "fabric status --json"))
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

    Does nothing if it is running.
    """
    from mirror_assets.cli import fabric

    return fabric.start(config, replay=replay, as_json=as_json)


@fabric.command("status", epilog=examples("fabric status --json"))
@configured
def fabric_status(config: Path | None, *, as_json: bool) -> Exit:
    """Show the mirrored database and its tables.

    Exit 1 if a table has failed.
    """
    from mirror_assets.cli import fabric

    return fabric.status(config, as_json=as_json)


app.add_command(direct_lake)
