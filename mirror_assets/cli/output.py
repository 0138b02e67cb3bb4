"""Prints results on the output, as a table for people or as JSON, and messages and questions on the error stream."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import pydantic
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mirror_assets.cli.json_log import is_json, print_line
from mirror_assets.cli.options import Exit, exit_code
from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


# Characters in a line where the output is not a terminal.
_WIDE = 200


def note(text: str) -> None:
    """Print a message on the error stream."""
    if is_json():
        error = text.removeprefix("error: ")
        print_line("info" if error == text else "error", error)
        return
    Console(stderr=True, highlight=False, soft_wrap=True, emoji=False).print(text, markup=False)


def note_errors(errors: Iterable[MirrorError]) -> Exit:
    """Print errors that did not end the command; return the exit code for them."""
    found = list(errors)
    note_reported(dict.fromkeys(map(str, found)))  # an unreachable store has one message for many tables
    return exit_code(error.family for error in found)


def note_reported(errors: Iterable[str | None]) -> None:
    """Print the errors that reports hold; a report without one has None."""
    for error in errors:
        if error:
            note(f"error: {error}")


def show(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    records: Sequence[DataclassInstance],
    *,
    as_json: bool,
) -> None:
    """Print the records: as JSON with all their fields, or as a table of the rows."""
    if as_json:
        show_json(records)
    else:
        show_records(title, columns, rows)


def show_records(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; without rows, that there are none."""
    cells = list(rows)
    if cells:
        console().print(as_table(title, columns, cells))
    else:
        show_text(title, "none")


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


def show_json(records: Sequence[DataclassInstance | Mapping[str, object]]) -> None:
    """Print the records as a JSON array."""
    print(json.dumps(records, indent=1, ensure_ascii=False, default=_plain))  # noqa: T201 the output


def _plain(value: object) -> object:
    """Return a value that JSON doesn't have as one that it has."""
    if isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type | TableName):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    return dict(value) if isinstance(value, Mapping) else str(value)


def refused(name: object, consequence: str, what: str = "the table's name") -> Exit | None:
    """State the consequence; return None if the user types this name, or else the exit code. `what` describes it."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        note(f"error: {consequence}. Next: there is no terminal to ask at; add --yes to confirm.")
        return Exit.BAD_SETTING
    note(f"{consequence}.\nType {what} to continue:")
    if sys.stdin.readline().strip() == str(name):
        return None
    note("nothing was changed")
    return Exit.FAILED
