"""Where a configuration was read: its file, and the line of every setting in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Origin:
    """A file, and the lines of its settings by dotted path."""

    file: Path = Path("mirror.yaml")
    lines: Mapping[str, int] = field(default_factory=dict)

    def line_of(self, path: str) -> int | None:
        """Line of a setting, or of the nearest setting that it would stand under; None for an unknown one."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path.rpartition(".")[0]
        return None

    def place(self, path: str) -> str:
        """`mirror.yaml:12`, or the file alone where no line is known."""
        line = self.line_of(path)
        return f"{self.file}:{line}" if line else str(self.file)

    def absolute(self, path: str | Path) -> Path:
        """The path seen from the file's folder."""
        return Path(os.path.normpath(self.file.absolute().parent / path))
