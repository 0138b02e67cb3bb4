"""Prints for people as a table, for machines as JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import pydantic
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mirror_assets.landing.names import TableName

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_WIDE = 200


def note(text: str) -> None:
    """Tell progress, on the error stream: the output stays clean for machines."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)


def show_records(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table for people."""
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if _all_numbers(rows, columns.index(name)) else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    _console().print(table)


def show_line(text: str) -> None:
    """A line of text for people, on the output, in one piece however long it is."""
    Console(highlight=False, soft_wrap=True).print(text, markup=False)


def show_text(title: str, text: str) -> None:
    """A text for people, below its title, to be copied as it is."""
    Console(highlight=False).print(title, style="bold", markup=False)
    show_line(text)


def _console() -> Console:
    """As wide as the terminal; wide enough for any table where the output goes elsewhere."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)


def show_json(records: Sequence[DataclassInstance]) -> None:
    """The values as a JSON array."""
    print(json.dumps([_plain(record) for record in records], indent=1, ensure_ascii=False))  # noqa: T201 the output


def _plain(value: object) -> object:
    if isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type | TableName):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _all_numbers(rows: Sequence[Sequence[str]], index: int) -> bool:
    return all(row[index].replace(",", "").replace(".", "").isdigit() for row in rows) and bool(rows)
