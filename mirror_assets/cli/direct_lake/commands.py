"""`mirror-assets direct-lake`: its three commands and their options. No Spark and no Dagster is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mirror_assets.cli.direct_lake.request import Request
from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import PATH, Decorated, configured, examples, table_names, whole_number, with_options

if TYPE_CHECKING:
    from mirror_assets.direct_lake.maintenance.plan_values import FabricTable


def _request(options: Mapping[str, object]) -> Request:
    """Return the request with the options that were given; click has checked their types."""
    return Request(**{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise click.BadParameter(f"expected names of columns, with commas between, got {text!r}")
    return names


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours < 1e6:
        raise click.BadParameter(f"expected a number of hours, got {text!r}")
    return hours


def _fabric_table(text: str) -> FabricTable:
    from mirror_assets.direct_lake.maintenance.plan_values import FabricTable

    schema, _, name = text.rpartition(".")
    return FabricTable(name, schema or None)


_table = click.argument("table", shell_complete=table_names)


def _consumers(command: Decorated) -> Decorated:
    """Add who still needs older versions of the table."""
    point = "A version at which a model is framed, or a time, in UTC without a zone; may be repeated."
    export = (
        "A model's answer to INFO.DELTATABLEMETADATASTORAGES() or INFO.PARQUETFILESTORAGES(), as CSV or JSON; "
        "may be repeated."
    )
    retain = "The hours of `VACUUM … RETAIN`; Delta from 4.1 on heeds only 0."
    return with_options(
        command,
        click.option("--frame", multiple=True, metavar="VERSION|TIME", help=point),
        click.option("--export", multiple=True, type=PATH, help=export),
        click.option("--model-table", metavar="NAME", help="The table's name in the exports, if they have several."),
        click.option("--retain-hours", type=_hours, metavar="HOURS", help=retain),
    )


def _capacity(command: Decorated) -> Decorated:
    """Add the capacity and the kind of Direct Lake; by default they are those of the table's settings."""
    modes = click.Choice(("onelake", "sql", "sql-only"))
    return with_options(
        command,
        click.option("--sku", help="The capacity, such as F64.  [default: the setting, else all]"),
        click.option("--mode", type=modes, help="The kind of Direct Lake.  [default: the setting, else onelake]"),
        click.option("--cache", type=PATH, help="Folder in which facts of Parquet footers are kept."),
        click.option("--no-cache", is_flag=True, help="Neither use nor keep facts of footers."),
    )


def _questions(command: Decorated) -> Decorated:
    """Add what a report answers only when it is asked, and what else it makes."""
    months = whole_number("a number of months from 1 to 1200", 1, 1_200)
    fabric = "Plan maintenance for Fabric, with V-Order and the request's body; the table as its lakehouse names it."
    return with_options(
        command,
        click.option("--columns", type=_names, metavar="A,B", help="Columns that a model uses."),
        click.option("--one-side", type=_names, metavar="A,B", help="Columns on the one-side of a relationship."),
        click.option("--months", type=months, metavar="N", help="Count the rows of the newest N months."),
        click.option("--date-column", metavar="COLUMN", help="The column that tells a row's month."),
        click.option("--partition-by", metavar="COLUMN", help="Predict the files if COLUMN partitioned the table."),
        click.option("--fabric", type=_fabric_table, metavar="[SCHEMA.]TABLE", help=fabric),
        click.option("--pictures", type=PATH, help="Folder for the report's pictures, as PNG."),
    )


@click.group("direct-lake", epilog=examples("direct-lake report ./lake/orders", "direct-lake vacuum-plan sales.orders"))
def direct_lake() -> None:
    """Show what Direct Lake makes of a table.

    TABLE is a table of mirror.yaml, or the path or URI of any Delta table; a path has a slash in it (./orders).
    """


@direct_lake.command(epilog=examples("direct-lake report ./lake/orders --sku F64 --pictures ./pictures"))
@_table
@_consumers
@_capacity
@_questions
@configured
def report(*, as_json: bool, **options: object) -> Exit:
    """Show layout, guardrails, types and VACUUM's plan.

    With --columns, --one-side, --months and --partition-by, it answers questions, too.
    """
    from mirror_assets.cli.direct_lake import inspect_table

    return inspect_table.report(_request(options), as_json=as_json)


@direct_lake.command(epilog=examples("direct-lake vacuum-plan sales.orders --frame 120 --retain-hours 0"))
@_table
@_consumers
@configured
def vacuum_plan(*, as_json: bool, **options: object) -> Exit:
    """Show what VACUUM would delete, and who needs it.

    Deletes nothing. Exit 1 if a model or the mirror needs a file that would go.
    """
    from mirror_assets.cli.direct_lake import inspect_table

    return inspect_table.vacuum_plan(_request(options), as_json=as_json)


@direct_lake.command(epilog=examples("direct-lake guardrails sales.orders --sku F64"))
@_table
@_capacity
@configured
def guardrails(*, as_json: bool, **options: object) -> Exit:
    """Show which capacities the table fits.

    Exit 1 if it exceeds a limit of --sku, or of the capacity in its settings.
    """
    from mirror_assets.cli.direct_lake import inspect_table

    return inspect_table.guardrails(_request(options), as_json=as_json)
