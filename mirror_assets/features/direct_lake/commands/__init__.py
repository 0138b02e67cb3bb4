"""`mirror-assets direct-lake`: its two commands and their options. They start neither Spark nor Dagster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mirror_assets.cli.options import (
    PATH,
    CommandGroup,
    Decorated,
    Exit,
    configured,
    examples,
    table_names,
    with_options,
)

if TYPE_CHECKING:
    from mirror_assets.features.direct_lake.commands.inspection import Inspection
    from mirror_assets.features.direct_lake.guardrails import Sku


def _inspection(options: Mapping[str, object]) -> Inspection:
    """Return the inspection with the options that were given; click has checked their types."""
    from mirror_assets.features.direct_lake.commands.inspection import Inspection

    given = {name: value for name, value in options.items() if value is not None}
    return Inspection(**given)  # type: ignore[arg-type]


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours < 1e6:
        raise click.BadParameter(f"expected a number of hours, got {text!r}")
    return hours


def _sku(text: str) -> Sku:
    from mirror_assets.features.direct_lake.guardrails import sku_of

    try:
        return sku_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


_table = click.argument("table", shell_complete=table_names)


def _consumers(command: Decorated) -> Decorated:
    """Add the readers of older versions of the table."""
    point = "Version at which a model is framed, or a time, UTC unless a zone follows; may be repeated."
    export = "Exported result of INFO.DELTATABLEMETADATASTORAGES(), as CSV or JSON; may be repeated."
    retain = "Hours of `VACUUM … RETAIN`; since Delta 4.1, only 0 has an effect."
    return with_options(
        command,
        click.option("--frame", multiple=True, metavar="VERSION|TIME", help=point),
        click.option("--export", multiple=True, type=PATH, help=export),
        click.option("--retain-hours", type=_hours, metavar="HOURS", help=retain),
    )


@click.group(
    "direct-lake",
    cls=CommandGroup,
    epilog=examples("direct-lake report ./lake/orders", "direct-lake vacuum-plan sales.orders"),
)
def direct_lake() -> None:
    """Report how Direct Lake reads a table.

    TABLE is a table of mirror.yaml, or the path or URI of any Delta table; a path contains a slash (./orders).
    """


@direct_lake.command(epilog=examples("direct-lake report ./lake/orders --sku F64"))
@_table
@_consumers
@click.option("--sku", type=_sku, metavar="SKU", help="The capacity, such as F64.  [default: the setting, else all]")
@click.option(
    "--mode",
    type=click.Choice(("onelake", "sql", "sql-only")),
    help="The kind of Direct Lake.  [default: the setting, else onelake]",
)
@click.option("--cache", type=PATH, help="Folder of the footer cache.")
@click.option("--no-cache", is_flag=True, help="Don't use the footer cache.")
@click.option(
    "--fabric", metavar="[SCHEMA.]TABLE", help="Plan maintenance for Fabric's Spark, where the table has this name."
)
@configured
def report(*, as_json: bool, **options: object) -> Exit:
    """Show the whole report.

    Guardrails, layout, columns, types, VACUUM, framing, advice and a script of maintenance. Exit 1 if the table exceeds
    a limit of --sku, or of the capacity in its settings.
    """
    return _inspection(options).report(as_json=as_json)


@direct_lake.command(epilog=examples("direct-lake vacuum-plan sales.orders --frame 120 --retain-hours 0"))
@_table
@_consumers
@configured
def vacuum_plan(*, as_json: bool, **options: object) -> Exit:
    """Show the files that VACUUM would delete, and who needs them.

    Deletes nothing. Exit 1 if a model or the mirror needs a file that VACUUM would delete.
    """
    return _inspection(options).vacuum_plan(as_json=as_json)
