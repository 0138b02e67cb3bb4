"""What can be wrong with mirror.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mirror_assets.errors import ErrorCode, SettingError


@dataclass(frozen=True)
class Problem:
    """One mistake: the setting's dotted path, what is wrong with it, and its line where one is known."""

    path: str
    message: str
    line: int | None = None

    def at(self, file: Path) -> str:
        """`mirror.yaml:12: tables.nycflights.planes.keys: message`."""
        place = f"{file}:{self.line}" if self.line else str(file)
        return ": ".join(text for text in (place, self.path, self.message) if text)


class ConfigInvalid(SettingError):
    """mirror.yaml has mistakes; all of them are in the message, one a line."""

    code = ErrorCode.CONFIG_INVALID

    def __init__(self, file: Path, problems: tuple[Problem, ...]) -> None:
        self.file, self.problems = file, problems
        count = "one mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        listed = "".join(f"{problem.at(file)}\n" for problem in problems)
        super().__init__(f"{file} has {count}:\n{listed}", "mend the lines named above, then run again.")


class ConfigMissing(SettingError):
    """There is no mirror.yaml that can be read."""

    code = ErrorCode.CONFIG_MISSING

    def __init__(self, file: Path, why: str) -> None:
        self.file = file
        super().__init__(
            f"configuration {file} can't be read: {why}.",
            "go to the folder of your mirror.yaml, or name it with --config or the variable MIRROR_CONFIG.",
        )


class TableUnknown(SettingError):
    """A table that mirror.yaml doesn't name."""

    code = ErrorCode.CONFIG_INVALID

    def __init__(self, file: Path, name: str, known: tuple[str, ...]) -> None:
        self.file, self.name, self.known = file, name, known
        super().__init__(f"{file} has no table {name!r}.", f"use one of: {', '.join(known)}.")
