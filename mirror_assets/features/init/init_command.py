"""The command `init` and its options: those of a store, and those of a catalog."""

from __future__ import annotations

from pathlib import Path

import click

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import PATH, examples, printed, whole_number


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"expected NAME=VALUE, got {text!r}")
    return name.strip(), value


@click.command(
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
@click.option("--credential", metavar="KIND", help="Identity that reads the store.  [default: default]")
@click.option("--region", help="S3: the bucket's region.")
@click.option("--endpoint", metavar="URL", help="Another server than the store's default.")
@click.option("--path-style/--host-style", default=None, help="S3: whether the bucket is in the path.")
@click.option("--profile", help="S3: the profile, for the credential `profile`.")
@click.option("--role", metavar="ARN", help="S3: a role to assume with the credential.")
@click.option("--key-file", type=PATH, help="Google: a service account's key, for the credential `key_file`.")
@click.option("--env-prefix", metavar="PREFIX_", help="Prefix of the names of this identity's environment variables.")
@click.option("--catalog", metavar="NAME", help="Survey the tables of this catalog, which LAKE has.")
@click.option("--schema", metavar="PATTERN", help="Catalog: only schemas that match.  [default: *]")
@click.option("--token-variable", metavar="NAME", help="Catalog: the environment variable that has its token.")
@click.option("--store", "stores", multiple=True, metavar="ADDRESS", help="Catalog: a store of its tables.")
@click.option(
    "--spark-setting", "spark_settings", multiple=True, type=_setting, metavar="NAME=VALUE", help="Catalog: for Spark."
)
@printed
def init(
    lake: str,
    file: Path,
    sql: Path | None,
    depth: int,
    catalog: str | None,
    schema: str | None,
    token_variable: str | None,
    stores: tuple[str, ...],
    spark_settings: tuple[tuple[str, str], ...],
    *,
    force: bool,
    no_spark: bool,
    as_json: bool,
    **store: object,
) -> Exit:
    """Write a mirror.yaml for the Delta tables of LAKE.

    LAKE is a folder, a store's address, or with --catalog the server of a Unity Catalog, or `spark`. Proposes keys,
    and proves them with Spark. Writes ALTER TABLE statements for disabled features, such as the change data feed, into
    an SQL file, and runs none of them. Exit 1 if no table can be mirrored yet.
    """
    of_catalogs = {"schema": schema, "token-variable": token_variable, "store": stores, "spark-setting": spark_settings}
    for option, value in of_catalogs.items():
        if value and not catalog:
            raise click.UsageError(f"--{option} goes with --catalog")
    from mirror_assets.features.init import init_run as command_run
    from mirror_assets.features.init.surveyed_lake import CatalogRequest

    settings = {name: value for name, value in store.items() if value is not None}
    request = None
    if catalog:
        named = (catalog, schema or "*", token_variable, stores)
        request = CatalogRequest(lake, *named, settings, dict(spark_settings))
    return command_run.init(
        lake, settings, depth, request, file, sql, force=force, with_spark=not no_spark, as_json=as_json
    )
