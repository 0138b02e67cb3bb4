"""mirror.yaml as plain values that know their lines, so that every mistake can name its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from mirror_assets.config.errors import Problem
from mirror_assets.config.variables import fill


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


_TAG = "tag:yaml.org,2002:"
_TYPED = {f"{_TAG}{name}" for name in ("null", "bool", "int", "float")}
# A date is a text to us: no setting is a date, and text is what its message should speak of.
_FILLED_LATER = ("spark", "settings")
_TEXT = {f"{_TAG}{name}" for name in ("str", "timestamp", "value", "merge")}


def read_document(text: bytes, environment: Mapping[str, str]) -> Document:
    """The document in `text`, with references to environment variables filled in."""
    reader = _Reader(environment)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            reader.document.report((), "the file is empty")
        else:
            reader.document.value = reader.read(root, ())
    except yaml.MarkedYAMLError as error:
        _report_syntax(reader.document, error, text)
    except yaml.reader.ReaderError as error:
        _report_character(reader.document, error, text)
    except yaml.YAMLError as error:
        reader.document.report((), f"this is not YAML: {' '.join(str(error).split())}")
    except RecursionError:
        reader.document.report((), "the file is nested too deeply")
    return reader.document


def _report_syntax(document: Document, error: yaml.MarkedYAMLError, text: bytes) -> None:
    what = ", ".join(part for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else None
    here = b"".join(text.splitlines()[line - 1 : line]) if line else b""
    hint = "; inside { } and [ ] put quotes around ${NAME}" if b"${" in here else ""
    document.report((), f"this is not YAML: {what}{hint}", line)


def _report_character(document: Document, error: yaml.reader.ReaderError, text: bytes) -> None:
    """A file that is no UTF-8 is told by the place of its first wrong byte, another by that of the character."""
    try:
        decoded = text.decode("utf-8-sig")
        line = decoded[: error.position].count("\n") + 1
        what = f"this is not YAML: unacceptable character #x{ord(decoded[error.position]):04x}: {error.reason}"
    except UnicodeDecodeError as wrong:
        line = text[: wrong.start].count(b"\n") + 1
        what = f"it is not UTF-8: byte 0x{text[wrong.start]:02X}; save it as UTF-8"
    document.report((), what, line)


class _Reader:
    """Turns YAML nodes into values, and notes their lines and mistakes in the document."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.document = Document()
        self._environment = environment
        self._open: set[int] = set()
        self._typed = yaml.constructor.SafeConstructor()

    def read(self, node: yaml.Node, steps: Steps) -> Value:
        """The node's value. Mistakes go into the document; a null stands in for what can't be read."""
        self.document.lines.setdefault(steps, node.start_mark.line + 1)
        if id(node) in self._open:
            self.document.report(steps, "this alias refers to itself")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, steps)
            if isinstance(node, yaml.SequenceNode):
                return [self.read(item, (*steps, str(index))) for index, item in enumerate(node.value)]
            return self._scalar(node, steps)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, steps: Steps) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.document.report(steps, "a name must be text, not a list or a mapping", line)
                continue
            below = (*steps, key.value)
            if key.value in values:
                self.document.report(below, f"it is already set on line {self.document.lines[below]}", line)
                continue
            self.document.lines[below] = line
            values[key.value] = self.read(value, below)
        return values

    def _scalar(self, node: yaml.Node, steps: Steps) -> Value:
        if node.tag in _TYPED:
            try:
                typed: Value = self._typed.construct_object(node)
            except (ValueError, KeyError):
                self.document.report(steps, f"{node.value[:60]!r} can't be read as {node.tag.replace(_TAG, '')}")
                return None
            return typed
        if node.tag not in _TEXT:
            self.document.report(steps, f"the tag {node.tag.replace(_TAG, '!!')} can't be used here")
            return None
        text = str(node.value)
        filled = fill(text, self._environment)
        for problem in filled.problems:
            self.document.report(steps, problem)
        if filled.from_environment:
            self.document.from_environment.add(steps)
        if filled.problems:
            return None
        if steps[:-1] == _FILLED_LATER:
            return text
        if filled.text != text:
            self.document.written[steps] = Written(text, filled.text)
        return filled.text
