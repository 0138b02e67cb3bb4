"""The exit codes of all commands."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from mirror_assets.errors import SettingError


class Exit(IntEnum):
    """Fine; a check or a table failed; the configuration or the command line must be corrected."""

    FINE = 0
    FAILED = 1
    BAD_SETTING = 2


def exit_code(families: Iterable[str]) -> Exit:
    """Return the exit code for errors of these families: BAD_SETTING only if all of them are setting errors."""
    found = set(families)
    if not found:
        return Exit.FINE
    return Exit.BAD_SETTING if found == {SettingError.family} else Exit.FAILED
