"""`mirror-assets status`: how each table is, the one that matters first at the top; no Dagster run, and no Spark."""

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
from mirror_assets.composition import Project
from mirror_assets.config import load_config
from mirror_assets.errors import MirrorError
from mirror_assets.orchestration.table_status import CELLS, Status, StatusLine, read_status
from mirror_assets.pipeline.daemon_pool import DaemonPool
from mirror_assets.pipeline.table_health import Urgency

_TABLES_AT_ONCE = 16


def status(path: Path | None, names: Sequence[str], *, as_json: bool) -> Exit:
    """Show how the tables are; it fails if a source can't be read."""
    found = read_status(Project.of(load_config(path)), names, _pool())
    if as_json:
        show_json(found.lines)
    else:
        show_table(_table(found, "Status"))
    for text in found.notes:
        note(text)
    note_errors([*found.errors, *found.unreadable])
    return _code(found)


def watch(path: Path | None, names: Sequence[str], every: float) -> Exit:
    """Show the status of the tables repeatedly, until it is interrupted; the settings are read each time.

    Settings that are invalid for a while, as when the file is being edited, are reported, and end nothing.
    """
    found, pool, is_terminal = None, _pool(), sys.stdout.isatty()
    console = Console(highlight=False, emoji=False)
    live = Live(console=console, auto_refresh=False, screen=True) if is_terminal else None
    try:
        with live or nullcontext():
            while True:
                try:
                    found = read_status(Project.of(load_config(path)), names, pool)
                    page = _page(found)
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


def _page(found: Status) -> Group:
    """Return the table, and below it what concerns no table alone."""
    lines = [*found.notes, *(f"error: {error}" for error in found.errors)]
    return Group(_table(found, f"Status, {time.strftime('%H:%M:%S')}; Ctrl-C ends"), *map(Text, lines))


def _code(found: Status) -> Exit:
    """Return the exit code: it fails if a source can't be read."""
    return Exit.FAILED if found.unreadable else exit_code(error.family for error in found.errors)


def _pool() -> DaemonPool:
    """Return threads that read tables, which is mostly waiting for stores."""
    return DaemonPool("status", _TABLES_AT_ONCE)


_STYLES = {Urgency.NOW: "red", Urgency.SOON: "yellow", Urgency.NOT: "green"}
# What a narrow terminal shows, and what is shown beside it where there is room and anything to say.
_ALWAYS = ("table", "health", "source", "landed", "lag", "why")
_WITH_ROOM = frozenset({"mirror has", "readable for", "history", "mirror"})
_COST = frozenset({"requests a day", "CU s a day"})
_ROOMY = 120


def _table(found: Status, title: str) -> Table:
    cells = [_cells(line) for line in found.by_urgency]
    more = _WITH_ROOM | (_COST if found.in_onelake else frozenset()) if width() >= _ROOMY else frozenset()
    said = {name for row in cells for name, value in row.items() if value is not None}
    columns = [name for name in CELLS if name in _ALWAYS or name in more & said]
    rows = [[row[name] for name in columns] for row in cells]
    return as_table(title, columns, rows, [_STYLES[line.urgency] for line in found.by_urgency])


def _cells(line: StatusLine) -> dict[str, object]:
    return {name: cell(line) for name, cell in CELLS.items()}
