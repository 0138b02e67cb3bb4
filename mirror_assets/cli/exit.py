"""What the exit code of a command says."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from mirror_assets.errors import MirrorError, SettingError


class Exit(IntEnum):
    """Fine; a check or a table failed; what failed needs another setting, or the command line is wrong."""

    FINE = 0
    FAILED = 1
    BAD_SETTING = 2


def exit_code(families: Sequence[str]) -> Exit:
    """The exit code for errors of these families; a setting is to blame only if it is for all of them."""
    if not families:
        return Exit.FINE
    return Exit.BAD_SETTING if set(families) == {SettingError.family} else Exit.FAILED


def exit_code_of(errors: Sequence[MirrorError]) -> Exit:
    """The same for the errors themselves."""
    return exit_code([error.family for error in errors])
