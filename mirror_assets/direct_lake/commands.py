"""`mirror-assets direct-lake`: its three commands and their options. They start neither Spark nor Dagster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import PATH, Decorated, configured, examples, table_names, with_options

if TYPE_CHECKING:
    from mirror_assets.direct_lake.inspection import InspectionRequest


def _request(options: Mapping[str, object]) -> InspectionRequest:
    """Return the request with the options that were given; click has checked their types."""
    from mirror_assets.direct_lake.inspection import InspectionRequest

    given = {name: value for name, value in options.items() if value is not None}
    return InspectionRequest(**given)  # type: ignore[arg-type]


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise click.BadParameter(f"expected column names separated by commas, got {text!r}")
    return names


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours < 1e6:
        raise click.BadParameter(f"expected a number of hours, got {text!r}")
    return hours


_table = click.argument("table", shell_complete=table_names)


def _consumers(command: Decorated) -> Decorated:
    """Add the readers of older versions of the table."""
    point = "Version at which a model is framed, or a time, UTC unless a zone follows; may be repeated."
    export = "Exported result of INFO.DELTATABLEMETADATASTORAGES(), as CSV or JSON; may be repeated."
    return with_options(
        command,
        click.option("--frame", multiple=True, metavar="VERSION|TIME", help=point),
        click.option("--export", multiple=True, type=PATH, help=export),
        click.option("--model-table", metavar="NAME", help="The table's name in the exports, if they have several."),
        click.option(
            "--retain-hours",
            type=_hours,
            metavar="HOURS",
            help="Hours of `VACUUM … RETAIN`; since Delta 4.1, only 0 has an effect.",
        ),
    )


def _capacity(command: Decorated) -> Decorated:
    """Add the capacity, the kind of Direct Lake, and the cache of footers."""
    modes = click.Choice(("onelake", "sql", "sql-only"))
    return with_options(
        command,
        click.option("--sku", help="The capacity, such as F64.  [default: the setting, else all]"),
        click.option("--mode", type=modes, help="The kind of Direct Lake.  [default: the setting, else onelake]"),
        click.option("--cache", type=PATH, help="Folder of the footer cache."),
        click.option("--no-cache", is_flag=True, help="Don't use the footer cache."),
    )


@click.group("direct-lake", epilog=examples("direct-lake report ./lake/orders", "direct-lake vacuum-plan sales.orders"))
def direct_lake() -> None:
    """Report how Direct Lake reads a table.

    TABLE is a table of mirror.yaml, or the path or URI of any Delta table; a path contains a slash (./orders).
    """


@direct_lake.command(epilog=examples("direct-lake report ./lake/orders --sku F64 --pictures ./pictures"))
@_table
@_consumers
@_capacity
@click.option("--columns", type=_names, metavar="A,B", help="Columns that a model uses.")
@click.option(
    "--fabric", metavar="[SCHEMA.]TABLE", help="Plan maintenance for Fabric's Spark, where the table has this name."
)
@click.option("--pictures", type=PATH, help="Folder for the report's pictures, as PNG.")
@configured
def report(*, as_json: bool, **options: object) -> Exit:
    """Show the whole report.

    Guardrails, layout, columns, types, VACUUM, framing, advice and a script of maintenance.
    """
    from mirror_assets.direct_lake import inspection

    return inspection.report(_request(options), as_json=as_json)


@direct_lake.command(epilog=examples("direct-lake vacuum-plan sales.orders --frame 120 --retain-hours 0"))
@_table
@_consumers
@configured
def vacuum_plan(*, as_json: bool, **options: object) -> Exit:
    """Show the files that VACUUM would delete, and who needs them.

    Deletes nothing. Exit 1 if a model or the mirror needs a file that VACUUM would delete.
    """
    from mirror_assets.direct_lake import inspection

    return inspection.vacuum_plan(_request(options), as_json=as_json)


@direct_lake.command(epilog=examples("direct-lake guardrails sales.orders --sku F64"))
@_table
@_capacity
@configured
def guardrails(*, as_json: bool, **options: object) -> Exit:
    """Show which capacities the table fits into.

    Exit 1 if it exceeds a limit of --sku, or of the capacity in its settings.
    """
    from mirror_assets.direct_lake import inspection

    return inspection.guardrails(_request(options), as_json=as_json)
