"""mirror.yaml as plain values that know their lines, so that every mistake can name its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from mirror_assets.config.errors import Problem
from mirror_assets.config.origin import Origin

Value: TypeAlias = bool | int | float | str | list["Value"] | dict[str, "Value"] | None
Steps: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """A text with references as it is written, and as the environment filled it."""

    text: str
    filled: str

    def shown_in(self, message: str) -> str:
        """The message with what is written in place of what the environment says, which may be a secret."""
        for value in (self.filled, repr(self.filled)[1:-1]):
            message = message.replace(value, self.text) if value else message
        return message


@dataclass
class Document:
    """The file's values, the line of each, and what is wrong with the YAML itself."""

    value: Value = None
    lines: dict[Steps, int] = field(default_factory=dict)
    from_environment: set[Steps] = field(default_factory=set)
    written: dict[Steps, Written] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def report(self, steps: Steps, message: str, line: int | None = None) -> None:
        """Add a mistake, at `line` or at the line of the setting; a setting's first mistake is enough."""
        path = ".".join(steps)
        if steps in self.written:
            message = self.written[steps].shown_in(message)
        if line is not None or all(problem.path != path for problem in self.problems):
            self.problems.append(Problem(path, message, line or self.line_of(steps)))

    def line_of(self, steps: Steps) -> int:
        """Line of a setting, or of what it would stand under."""
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return self.lines.get(steps, 1)

    def get(self, *steps: str) -> Value:
        """The value at these steps, or None."""
        value = self.value
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def origin(self, file: Path) -> Origin:
        """Where its settings stand, for those who know only their dotted paths."""
        return Origin(file, {".".join(steps): line for steps, line in self.lines.items()})

    def names(self, *steps: str) -> tuple[str, ...]:
        """Names of the mapping at these steps; none where there is no mapping."""
        value = self.get(*steps)
        return tuple(value) if isinstance(value, dict) else ()
