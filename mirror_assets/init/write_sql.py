"""The text of the SQL file: the statements that tables miss, for a person to read and run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from mirror_assets.init.entries import Statement, TableEntry
from mirror_assets.source.table_properties import FEED_BY_DEFAULT

_WIDTH = 110
_HEADER = f"""\
-- Written by `mirror-assets init`; nothing has run it. Read it, then run it where the tables are written.
-- No statement changes a row. Each is one commit; enabling row tracking takes several.
-- To enable the change data feed for all new tables, set this in the Spark session or cluster that creates them:
--   {FEED_BY_DEFAULT} = true
"""
_NOTHING = "-- Nothing is missing.\n"


def sql_text(entries: Sequence[TableEntry]) -> str:
    """Return the text of the file. Statements that are not needed, but advised, are comments."""
    blocks = ["\n".join(_table(entry)) + "\n" for entry in entries if entry.statements]
    return "\n".join([_HEADER, *(blocks or [_NOTHING])])


def _table(entry: TableEntry) -> Iterator[str]:
    yield f"-- {_line(str(entry.name))}"
    for statement in entry.statements:
        yield from _statement(statement)


def _statement(statement: Statement) -> Iterator[str]:
    for line in textwrap.wrap(_line(statement.why), _WIDTH, break_long_words=False, break_on_hyphens=False):
        yield f"-- {line}"
    if "\n" in statement.sql or "\r" in statement.sql:
        yield "-- The table's address has a line break: rename its folder."
    elif statement.needed:
        yield f"{statement.sql};"
    else:
        yield f"-- Advised: {statement.sql};"


def _line(text: str) -> str:
    return " ".join(text.split())
