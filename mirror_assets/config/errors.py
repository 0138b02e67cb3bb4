"""The errors of mirror.yaml, with the lines to correct."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError
from mirror_assets.redaction import redacted


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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` with the most similar known name, or else the list of known names.

    The name of a table without its schema is similar to that with the schema.
    """
    by_lower = {other.lower(): other for other in known}
    near = [other for other in by_lower if other.endswith(f".{name.lower()}")]
    near = near or difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else f"; it is one of: {', '.join(by_lower.values())}"


class ConfigInvalid(SettingError):
    """mirror.yaml has mistakes; the message lists all of them, one per line."""

    code = ErrorCode.CONFIG_INVALID

    def __init__(self, file: Path, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        count = "one mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        listed = "".join(f"{problem.at(file)}\n" for problem in problems)
        super().__init__(f"{file} has {count}:\n{listed}", "correct these lines, then run again.")


class ConfigMissing(SettingError):
    """mirror.yaml doesn't exist, or can't be read."""

    code = ErrorCode.CONFIG_INVALID

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"the configuration {file} can't be read: {why}.",
            "run in the folder of your mirror.yaml, or name the file with --config or the variable MIRROR_CONFIG.",
        )


class TableUnknown(SettingError):
    """mirror.yaml has no table of this name."""

    code = ErrorCode.CONFIG_INVALID

    def __init__(self, file: Path, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"{file} has no table {name!r}.", f"use one of its tables{did_you_mean(name, known)}")


def variable_unset(setting: str, problem: str) -> SettingError:
    """A setting refers to an environment variable that is not set."""
    what, next_step = f"{setting}: {problem}.", "set it in this process's environment."
    return SettingError(what, next_step, code=ErrorCode.CONFIG_INVALID)


def memory_damaged(path: str) -> StopError:
    """Return the error for a file of discovered tables that this program did not write."""
    return StopError(
        f"{path} is not a valid list of discovered tables.",
        "restore it from a backup, or run `mirror-assets discover --accept`, which scans and writes it again.",
        code=ErrorCode.LANDING_DAMAGED,
    )


def no_response(what: str) -> RetryError:
    """Return the error for a place of tables, or a landing zone, that responds too late for loading definitions."""
    return RetryError(
        f"{what} did not respond in time to load the definitions.",
        "check the network and the address; the sensor `mirror` scans again.",
        code=ErrorCode.SOURCE_UNAVAILABLE,
    )


def request_failed(what: str, error: Exception) -> StopError:
    """Return the error for an exception of a library while tables are discovered."""
    return StopError(
        f"{what} can't be read: {redacted(f'{type(error).__name__}: {error}')[:300]}.",
        "check its address and credential; the next scan tries again. If the error persists, report it.",
        code=ErrorCode.UNEXPECTED,
    )


def tables_unconfirmed() -> RetryError:
    """Return the error of a process that has discovered tables without knowing which folder has which name."""
    return RetryError(
        "the tables that `discover` has found are not confirmed: the landing zone could not be read when this process "
        "loaded them, and another folder may have the name of a known table.",
        "nothing: the next run reads it again. If the error persists, run `mirror-assets doctor`.",
        code=ErrorCode.STORE_UNAVAILABLE,
    )
