"""Prints results on the output, as a table for people or as JSON, and messages and questions on the error stream."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import click
import pydantic
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mirror_assets.cli.errors import UNCONFIRMED
from mirror_assets.cli.json_log import is_json, print_line
from mirror_assets.cli.options import Exit, exit_code
from mirror_assets.errors import ErrorRecord
from mirror_assets.landing.names import TableName

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record: TypeAlias = DataclassInstance | Mapping[str, object]

# Characters in a line where the output is not a terminal: no text is wrapped or cut there.
_WIDE = 100_000


def note(text: str) -> None:
    """Print a message on the error stream."""
    if is_json():
        error = text.removeprefix("error: ")
        print_line("info" if error == text else "error", error)
        return
    click.echo(text, err=True)  # not by rich, which would write into the bar of `showing_progress`


def note_errors(errors: Iterable[ErrorRecord]) -> Exit:
    """Print errors that did not end the command, each text once; return the exit code for them."""
    found, first = list(errors), dict[tuple[str, str], ErrorRecord]()
    for error in found:  # an unreachable store has one message for many tables
        cause = error.message, error.next_step
        first[cause] = dataclasses.replace(first[cause], table=None) if cause in first else error
    for error in first.values():
        note(f"error: {error}")
    return exit_code(error.family for error in found)


def show(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    records: Sequence[Record],
    errors: Iterable[ErrorRecord] = (),
    *,
    as_json: bool,
) -> None:
    """Print the records: as JSON with all their fields, and the errors that none of them has; or a table of the rows.

    A table has no errors: `note_errors` prints them.
    """
    if as_json:
        show_json(records, errors)
    else:
        show_records(title, columns, rows)


def show_records(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; without rows, that there are none."""
    cells = list(rows)
    if cells:
        print_table(as_table(title, columns, cells))
    else:
        show_text(title, "none")


def print_table(table: Table) -> None:
    """Print a table; where even its longest words don't fit into the width, a line for each cell."""
    output = console()
    if table.__rich_measure__(output, output.options).minimum <= output.width:
        output.print(table)
        return
    output.print(table.title, style="bold")
    columns = [list(column.cells) for column in table.columns]
    for row, cells in zip(table.rows, zip(*columns, strict=True), strict=True):
        for name, cell in zip((column.header for column in table.columns), cells, strict=True):
            if cell:
                output.print(f"{name}: {cell}", style=row.style, soft_wrap=True)
        output.print()


def console() -> Console:
    """Return the console of the output; it shows colours on a terminal only."""
    return Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else _WIDE)


def as_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], styles: Sequence[str] | None = None
) -> Table:
    """Return a table; `styles` are those of the rows.

    None is an empty cell, a float has one digit after the point, numbers are aligned to the right.
    """
    cells = [["" if x is None else f"{x:.1f}" if isinstance(x, float) else str(x) for x in row] for row in rows]
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    for index, name in enumerate(columns):
        filled = [row[index].replace(",", "").replace(".", "") for row in cells if row[index]]
        table.add_column(name, justify="right" if filled and all(map(str.isdigit, filled)) else "left")
    for index, row in enumerate(cells):
        table.add_row(*map(escape, row), style=styles[index] if styles else None)
    return table


def show_line(text: str) -> None:
    """Print a line of text on the output, unbroken however long it is."""
    Console(highlight=False, soft_wrap=True, emoji=False).print(text, markup=False)


def show_text(title: str, text: str) -> None:
    """Print a text below its title, in a form that can be copied."""
    Console(highlight=False, emoji=False).print(title, style="bold", markup=False)
    show_line(text)


def show_json(records: Sequence[Record], errors: Iterable[ErrorRecord] = ()) -> None:
    """Print the records as a JSON array, and after them an object with `table` and `error` for each error."""
    lines = [*records, *({"table": error.table, "error": error} for error in errors)]
    print(json.dumps(lines, indent=1, ensure_ascii=False, default=_plain))  # noqa: T201 the output


def _plain(value: object) -> object:
    """Return a value that JSON doesn't have as one that it has."""
    if isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type | TableName):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    return dict(value) if isinstance(value, Mapping) else str(value)


def is_confirmed(name: object, consequence: str, what: str = "the table's name") -> bool:
    """State the consequence; return whether the user types this name, which `what` describes.

    Raises UNCONFIRMED without a terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UNCONFIRMED(consequence=consequence)
    note(f"{consequence}.\nType {what} to continue:")
    if sys.stdin.readline().strip() == str(name):
        return True
    note("nothing was changed")
    return False
