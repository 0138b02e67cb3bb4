"""The options of `mirror-assets direct-lake`, and what they asked for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

from mirror_assets.direct_lake.maintenance.plan_values import FabricTable

_MODES = ("onelake", "sql", "sql-only")


@dataclass(frozen=True)
class Request:
    """One command line; what its command doesn't take is as if it had been left out."""

    table: str
    config: Path | None = None
    frame: Sequence[str] = ()
    export: Sequence[Path] = ()
    model_table: str | None = None
    retain_hours: float | None = None
    sku: str | None = None
    mode: str | None = None
    columns: tuple[str, ...] = ()
    one_side: tuple[str, ...] = ()
    months: int | None = None
    date_column: str | None = None
    partition_by: str | None = None
    fabric: FabricTable | None = None
    pictures: Path | None = None
    cache: Path | None = None
    no_cache: bool = False

    @property
    def is_path(self) -> bool:
        """Whether the table is named by its address: names of mirror.yaml have no slash, and don't begin with a dot."""
        return "/" in self.table or self.table.startswith(".")


def request_of(options: argparse.Namespace) -> Request:
    """What the command line asks for; one that asks for half of something ends with its usage and exit code 2."""
    told = vars(options)
    if (told.get("months") is None) != (told.get("date_column") is None):
        _refuse(options, "--months and --date-column go together")
    if told.get("model_table") is not None and not told["export"]:
        _refuse(options, "--model-table names a table of --export")
    return Request(**{field.name: told[field.name] for field in fields(Request) if field.name in told})


def _refuse(options: argparse.Namespace, why: str) -> NoReturn:
    usage: argparse.ArgumentParser = options.usage
    usage.error(why)


def add_table(command: argparse.ArgumentParser) -> None:
    """The table that a command is about."""
    text = "a table of mirror.yaml, or the path or URI of any Delta table; a path has a slash in it (./orders)"
    command.add_argument("table", metavar="TABLE", help=text)
    command.set_defaults(usage=command)


def add_readers(command: argparse.ArgumentParser) -> None:
    """Who needs older versions."""
    command.add_argument(
        "--frame",
        action="append",
        default=[],
        metavar="VERSION|TIME",
        help="a version that a model is framed at, or a time, UTC without a zone; may be repeated",
    )
    command.add_argument(
        "--export",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a model's answer to INFO.DELTATABLEMETADATASTORAGES() or INFO.PARQUETFILESTORAGES(), as CSV or JSON; "
        "may be repeated",
    )
    command.add_argument("--model-table", metavar="NAME", help="the table's name in the exports, if they have several")
    command.add_argument(
        "--retain-hours", type=_hours, metavar="HOURS", help="of `VACUUM … RETAIN`; Delta from 4.1 on heeds only 0"
    )


def add_capacity(command: argparse.ArgumentParser) -> None:
    """The capacity that counts, and the kind of Direct Lake; a table of mirror.yaml has them in its settings."""
    command.add_argument("--sku", metavar="SKU", help="the capacity, such as F64 (default: all, or the setting)")
    command.add_argument("--mode", choices=_MODES, help="the kind of Direct Lake (default: onelake, or the setting)")
    command.add_argument("--cache", type=Path, metavar="FOLDER", help="where facts of footers are kept")
    command.add_argument("--no-cache", action="store_true", help="keep no facts of footers, and use none")


def add_questions(command: argparse.ArgumentParser) -> None:
    """Questions that a report answers only when they are asked."""
    command.add_argument("--columns", type=_names, default=(), metavar="A,B", help="the columns that a model uses")
    command.add_argument(
        "--one-side", type=_names, default=(), metavar="A,B", help="columns on the one-side of a relationship"
    )
    command.add_argument("--months", type=_months, metavar="N", help="rows if only the newest months are kept")
    command.add_argument("--date-column", metavar="COLUMN", help="the column that tells a row's month")
    command.add_argument("--partition-by", metavar="COLUMN", help="files if the table were partitioned by the column")


def add_results(command: argparse.ArgumentParser) -> None:
    """What else a report is to give."""
    command.add_argument(
        "--fabric",
        type=_fabric_table,
        metavar="[SCHEMA.]TABLE",
        help="plan maintenance for Fabric, with V-Order and its request's body; the table as its lakehouse names it",
    )
    command.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw the report's pictures there, as PNG")


def _fabric_table(text: str) -> FabricTable:
    schema, _, name = text.rpartition(".")
    return FabricTable(name, schema or None)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"expected names of columns, with commas between, got {text!r}")
    return names


def _months(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_200:
        raise argparse.ArgumentTypeError(f"expected a number of months from 1 to 1200, got {text!r}")
    return int(text)


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours < 1e6:
        raise argparse.ArgumentTypeError(f"expected a number of hours, got {text!r}")
    return hours
