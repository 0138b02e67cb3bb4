"""Runs `status`: shows the status of each table, the most urgent first; without a Dagster run and without Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from time import sleep

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mirror_assets.cli.exit import Exit, exit_code
from mirror_assets.cli.output import as_table, note, note_errors, show_json, show_table, width
from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.errors import MirrorError
from mirror_assets.orchestration.table_status import CELLS, Status, read_status
from mirror_assets.pipeline.many_tables import DaemonPool
from mirror_assets.pipeline.table_health import Urgency

_TABLES_AT_ONCE = 16


def status(path: Path | None, names: Sequence[str], *, as_json: bool) -> Exit:
    """Show the status of the tables; fails if a source can't be read."""
    found = read_status(compose(load_config(path)), names, DaemonPool("status", _TABLES_AT_ONCE))
    if as_json:
        show_json(found.lines)
    else:
        show_table(_table(found, "Status"))
    for text in found.notes:
        note(text)
    note_errors([*found.errors, *found.unreadable])
    return _code(found)


def watch(path: Path | None, names: Sequence[str], every: float) -> Exit:
    """Show the status of the tables repeatedly, until interrupted; the settings are read each time.

    Settings that are invalid for a while, such as while the file is edited, are reported.
    """
    found, pool, is_terminal = None, DaemonPool("status", _TABLES_AT_ONCE), sys.stdout.isatty()
    console = Console(highlight=False, emoji=False)
    live = Live(console=console, auto_refresh=False, screen=True) if is_terminal else None
    try:
        with live or nullcontext():
            while True:
                try:
                    found = read_status(compose(load_config(path)), names, pool)
                    lines = [*found.notes, *(f"error: {error}" for error in found.errors)]
                    title = f"Status, {time.strftime('%H:%M:%S')}; Ctrl-C ends"
                    page = Group(_table(found, title), *map(Text, lines))
                except MirrorError as error:
                    if found is None:
                        raise
                    page = Group(Text(f"error: {error}"))
                if live is not None:
                    live.update(page, refresh=True)
                else:
                    show_table(page)
                sleep(every)
    except KeyboardInterrupt:
        return Exit.FINE if found is None else _code(found)


def _code(found: Status) -> Exit:
    """Return the exit code: it fails if a source can't be read."""
    return Exit.FAILED if found.unreadable else exit_code(error.family for error in found.errors)


_STYLES = {Urgency.NOW: "red", Urgency.SOON: "yellow", Urgency.NOT: "green"}
# The columns of a narrow terminal, and those that a wide one adds unless they are empty.
_ALWAYS = ("table", "health", "source", "landed", "lag", "why")
_WITH_ROOM = frozenset({"mirror has", "readable for", "history", "mirror", "unproved", "by files"})
_COST = frozenset({"requests a day", "CU s a day"})
_ROOMY = 120


def _table(found: Status, title: str) -> Table:
    lines = found.by_urgency
    cells = [{name: cell(line) for name, cell in CELLS.items()} for line in lines]
    more = _WITH_ROOM | (_COST if found.is_metered else frozenset()) if width() >= _ROOMY else frozenset()
    filled = {name for row in cells for name, value in row.items() if value is not None}
    columns = [name for name in CELLS if name in _ALWAYS or name in more & filled]
    rows = [[row[name] for name in columns] for row in cells]
    return as_table(title, columns, rows, [_STYLES[line.urgency] for line in lines])
