"""Asks before a command deletes what the mirror has."""

from __future__ import annotations

import sys

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note
from mirror_assets.landing.names import TableName


def refused(table: TableName, consequence: str) -> Exit | None:
    """State the consequence; return None if the user types the table's name, or else the exit code."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        note(f"error: {consequence}. Next: there is no terminal to ask at; add --yes to confirm.")
        return Exit.BAD_SETTING
    note(f"{consequence}.\nType the table's name to continue:")
    if sys.stdin.readline().strip() == str(table):
        return None
    note("nothing was changed")
    return Exit.FAILED
