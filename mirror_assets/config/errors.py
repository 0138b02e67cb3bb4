"""The errors of mirror.yaml, with the lines to correct."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.errors import ErrorCode, ErrorRow, RetryError, SettingError


@dataclass(frozen=True)
class Problem:
    """One mistake: the setting's dotted path, the message, and its line if known."""

    path: str
    message: str
    line: int | None = None

    def at(self, file: Path) -> str:
        """Return `mirror.yaml:12: tables.nycflights.planes.keys: message`."""
        place = f"{file}:{self.line}" if self.line else str(file)
        return ": ".join(text for text in (place, self.path, self.message) if text)


_MOST_NAMES = 30


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` with the most similar known name, or else the first of the known names.

    The name of a table without its schema is similar to that with the schema.
    """
    by_lower = {other.lower(): other for other in known}
    near = [other for other in by_lower if other.endswith(f".{name.lower()}")]
    near = near or difflib.get_close_matches(name.lower(), by_lower, n=1)
    if near:
        return f"; did you mean {by_lower[near[0]]!r}?"
    names = list(by_lower.values())
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"; it is one of: {', '.join(names[:_MOST_NAMES])}{more}"


MISTAKES = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "mirror.yaml has mistakes; the message lists all of them, one per line.",
    "{file} has {count}:\n{listed}",
    "correct these lines, then run again.",
    "mirror-assets validate",
)


def config_invalid(file: Path, problems: tuple[Problem, ...]) -> SettingError:
    """Return the error that lists all mistakes of the file."""
    count = "one mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
    return MISTAKES(
        file=file, count=count, listed="".join(f"{problem.at(file)}\n" for problem in problems), problems=problems
    )


CONFIG_MISSING = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "Mirror.yaml doesn't exist, or can't be read.",
    "the configuration {file} can't be read: {why}.",
    "run in the folder of your mirror.yaml, or name the file with --config or the variable MIRROR_CONFIG.",
    "mirror-assets validate --config path/to/mirror.yaml    # lists all mistakes with their lines",
)
TABLE_UNKNOWN = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "mirror.yaml has no table of this name, or none that this pattern matches.",
    "{file} has no table {name!r}.",
    "use one of its tables{meant}",
    "mirror-assets validate",
)
VARIABLE_UNSET = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "A setting refers to an environment variable that is not set.",
    "{setting}: {problem}.",
    "set it in this process's environment.",
    "mirror-assets validate",
)
TABLES_UNCONFIRMED = ErrorRow(
    ErrorCode.STORE_UNAVAILABLE,
    RetryError,
    "A process that has discovered tables without knowing which folder has which name.",
    "the tables that `discover` has found are not confirmed: the landing zone could not be read when this process"
    " loaded them, and another folder may have the name of a known table.",
    "nothing: the next run reads it again. If the error persists, run `mirror-assets doctor`.",
    "mirror-assets doctor --no-spark    # tests the landing zone\nmirror-assets run",
)
