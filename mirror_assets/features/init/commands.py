"""The commands `init` and `discover`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mirror_assets.cli.options import FAILED_CHECK, PATH, Exit, configured, examples, printed

if TYPE_CHECKING:
    from mirror_assets.config.discovered import RuleOutcome
    from mirror_assets.config.model import Config
    from mirror_assets.errors import ErrorRecord
    from mirror_assets.features.init.with_spark.draft import Draft
    from mirror_assets.pipeline.spark_sessions import Session


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
@click.option("--depth", type=click.IntRange(1, 9), default=3, help="Levels of folders below LAKE to scan.")
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
    from mirror_assets.cli.output import note
    from mirror_assets.features.init.errors import FILE_EXISTS
    from mirror_assets.features.init.with_spark.draft import counted, make_draft
    from mirror_assets.features.init.with_spark.survey import CatalogRequest, open_catalog, open_lake

    began, sql = time.monotonic(), sql or file.with_suffix(".sql")
    for existing in (file, sql):
        if existing.exists() and not force:
            raise FILE_EXISTS(file=existing)
    settings = {name: value for name, value in store.items() if value is not None}
    if catalog:
        named = (catalog, schema or "*", token_variable, stores)
        found = open_catalog(CatalogRequest(lake, *named, settings, dict(spark_settings)), file, _session)
        where = f"in the catalog {catalog}"
    else:
        found = open_lake(lake, settings, depth, file.absolute().parent)
        where = f"below {found.root}"
    note(f"{counted(len(found.tables), 'table')} {where}")
    if not no_spark:
        note("Proving keys with Spark; --no-spark skips this")
    draft = make_draft(found, file, sql, None if no_spark else _session)
    draft.write()
    _show(draft, f"Found in {time.monotonic() - began:.0f} s", as_json=as_json)
    needed = sum(statement.needed for entry in draft.entries for statement in entry.statements)
    note(f"Wrote {file} with {counted(draft.ready, 'table')} to mirror, and {sql} with {counted(needed, 'statement')}")
    if draft.ready:
        note(f"Next: read {file}, then run `mirror-assets run --config {file}`")
    if needed:
        note(f"Then: read {sql} and run it, and remove the # before its tables in {file}")
    return Exit.FINE if draft.ready else Exit.FAILED


@dataclass(frozen=True)
class TableLine:
    """A table of the lake. `missing`: why it is not mirrored yet; `proof`: how certain its keys are."""

    table: str
    path: str
    rows: int | None = None
    feed: bool = False
    row_tracking: bool = False
    changes: str | None = None
    keys: tuple[str, ...] = ()
    proof: str | None = None
    missing: str | None = None


def _session(config: Config) -> Session:
    from mirror_assets.composition import spark_settings_of

    return spark_settings_of(config).open


def _show(draft: Draft, title: str, *, as_json: bool) -> None:
    from mirror_assets.cli.output import show
    from mirror_assets.config.table_settings import StorePath

    lines = [
        TableLine(
            table=str(entry.name),
            path=entry.source.path if isinstance(entry.source, StorePath) else entry.source.table,
            rows=entry.rows,
            feed=entry.feed,
            row_tracking=entry.row_tracking,
            changes=entry.changes.value,
            keys=entry.keys.columns if entry.keys else (),
            proof=entry.keys.proof.value if entry.keys else None,
            missing=entry.missing,
        )
        for entry in draft.entries
    ]
    lines += [TableLine("", table.path, missing=table.why) for table in draft.unreadable]
    rows = [
        (
            x.table,
            x.path,
            None if x.rows is None else f"{x.rows:,}",
            ", ".join(name for name, is_on in (("feed", x.feed), ("row tracking", x.row_tracking)) if is_on),
            x.changes,
            ", ".join(x.keys),
            x.proof,
            x.missing or "ready",
        )
        for x in lines
    ]
    columns = ("table", "path", "rows", "on", "changes", "keys", "proof", "result")
    show(title, columns, rows, lines, as_json=as_json)


@dataclass(frozen=True)
class FoundLine:
    """A folder that a rule has found; `rule` is the rule's line in the file."""

    table: str
    address: str
    rule: str
    state: str
    reason: str
    keys: tuple[str, ...]


@click.command(epilog=examples("discover", "discover --accept", "discover --json"))
@click.option("--accept", is_flag=True, help="Remove all tables that are no longer listed.")
@configured
def discover(config: Path | None, *, accept: bool, as_json: bool) -> Exit:
    """Show the tables that the rules find.

    Scans now, and shows for each folder whether it is mirrored, and if not, why. Exit 1 if a rule finds no table.
    """
    from mirror_assets.cli.output import note_errors, show
    from mirror_assets.config.discovered import When
    from mirror_assets.config.errors import Problem
    from mirror_assets.config.load import load_config
    from mirror_assets.errors import NEXT, ErrorCode, ErrorRecord
    from mirror_assets.features.init.discover_rule import DiscoverSettings

    found = load_config(config, when=When.ACCEPT if accept else When.NOW)
    if not DiscoverSettings.of(found).discover:
        raise found.invalid((Problem("discover", "no rule finds tables"),))
    lines = [
        FoundLine(row.name, row.address, found.place(f"discover.{row.rule}"), row.state.value, row.reason, row.keys)
        for row in found.discovered.tables
    ]
    rows = [(x.state, x.table, ", ".join(x.keys), x.address, x.reason) for x in lines]
    errors = [error for rule in found.discovered.rules if (error := _error(found, rule))]
    taken = (text.partition(NEXT) for text in found.discovered.refused)
    errors += [ErrorRecord(None, ErrorCode.NAME_REFUSED.value, what, step, FAILED_CHECK) for what, _, step in taken]
    show("Found", ("state", "table", "keys", "address", "why"), rows, lines, errors, as_json=as_json)
    for rule in found.discovered.rules:
        _note(found, rule)
    return note_errors(errors)


def _error(config: Config, rule: RuleOutcome) -> ErrorRecord | None:
    """Return why the rule finds no table, or could not scan; None if it is well."""
    from mirror_assets.errors import NEXT, ErrorCode, ErrorRecord

    if rule.is_well:
        return None
    nothing = f"no table at {rule.place}.{NEXT}correct `from`, or write the tables first."
    what, _, step = (rule.trouble or nothing).partition(NEXT)
    message = f"{config.place(f'discover.{rule.rule}')}: {what}"
    return ErrorRecord(None, rule.code or ErrorCode.SOURCE_UNREADABLE.value, message, step, FAILED_CHECK)


def _note(config: Config, rule: RuleOutcome) -> None:
    from mirror_assets.cli.output import note

    place = config.place(f"discover.{rule.rule}")
    if rule.is_well:
        note(f"{place}: {rule.folders} folders, {rule.tables} tables, {rule.mirrored} mirrored")
    if rule.unused_keys:
        note(f"{place}: `keys` names tables that were not found: {', '.join(rule.unused_keys)}")
