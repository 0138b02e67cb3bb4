"""The YAML of mirror.yaml: its plain values, the line of each setting, and every mistake in the YAML itself.

PyYAML parses. No loader preserves all that the messages need: Dagster's parser with source positions silently takes the
last of two equal names; ruamel.yaml stops at the first, accepts unknown tags, and reads YAML 1.2, where `no` is a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from mirror_assets.config.errors import Problem
from mirror_assets.config.variables import Filled, fill
from mirror_assets.settings import Origin

Value: TypeAlias = bool | int | float | str | list["Value"] | dict[str, "Value"] | None
Steps: TypeAlias = tuple[str, ...]

_TAG = "tag:yaml.org,2002:"
_TYPED = {f"{_TAG}{name}" for name in ("null", "bool", "int", "float")}
_TEXT = {f"{_TAG}{name}" for name in ("str", "timestamp", "value", "merge")}  # a date is text
_SPARK_SETTINGS, _REMOTE = ("spark", "settings"), ("spark", "remote")
# The number of steps to the settings of tables, by the first step.
_STEPS_TO_SETTINGS = {"tables": 2, "defaults": 1, "discover": 3}


@dataclass
class Document:
    """The file's values, and the mistakes found so far.

    `filled` has the texts in which references were resolved; `from_environment` the settings that come from the
    environment alone; `unset` the variables that are not set. `unresolved` has the mistakes that they make, except
    those in conditions and expressions of tables, which are in `unresolved_in_rows`.
    """

    file: Path
    value: Value = None
    lines: dict[str, int] = field(default_factory=dict)
    filled: dict[str, Filled] = field(default_factory=dict)
    from_environment: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    unset: dict[str, None] = field(default_factory=dict)
    unresolved: list[Problem] = field(default_factory=list)
    unresolved_in_rows: list[Problem] = field(default_factory=list)

    @property
    def origin(self) -> Origin:
        """The file and the lines, for the model."""
        return Origin(self.file, self.lines)

    def report(self, steps: Steps, message: str, line: int | None = None) -> None:
        """Add a mistake at `line`; without `line`, only the first mistake of a setting, at the setting's line."""
        path = ".".join(steps)
        if path in self.filled:
            message = self.filled[path].unfilled(message)
        if line is not None or all(problem.path != path for problem in self.problems):
            self.problems.append(Problem(path, message, line or self.line_of(steps)))

    def line_of(self, steps: Steps) -> int:
        """Return the line of a setting, or of the nearest setting above it."""
        return self.origin.line_of(".".join(steps)) or self.lines.get("", 1)

    def get(self, *steps: str) -> Value:
        """Return the value at these steps, or None; a step into a list is its index."""
        value = self.value
        for step in steps:
            if isinstance(value, list):
                value = value[int(step)] if step.isdecimal() and int(step) < len(value) else None
            else:
                value = value.get(step) if isinstance(value, dict) else None
        return value

    def names(self, *steps: str) -> tuple[str, ...]:
        """Return the names in the mapping at these steps; empty without a mapping."""
        value = self.get(*steps)
        return tuple(value) if isinstance(value, dict) else ()


def read_document(text: bytes, file: Path, environment: Mapping[str, str]) -> Document:
    """Return the document in `text`, the content of `file`, with its references to the environment resolved.

    Mistakes are in the document, and not raised.
    """
    reader = _Reader(Document(file), environment)
    document = reader.document
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            document.report((), "the file is empty")
        else:
            document.value = reader.read(root, ())
    except yaml.MarkedYAMLError as error:
        _report_syntax(document, error, text)
    except yaml.reader.ReaderError as error:
        _report_character(document, error, text)
    except yaml.YAMLError as error:
        document.report((), f"this is not YAML: {' '.join(str(error).split())}")
    except RecursionError:
        document.report((), "the file is nested too deeply")
    return document


class _Reader:
    """Turns YAML nodes into values, and adds their lines and mistakes to the document."""

    def __init__(self, document: Document, environment: Mapping[str, str]) -> None:
        self.document = document
        self._environment = environment
        self._open: set[int] = set()
        self._typed = yaml.constructor.SafeConstructor()

    def read(self, node: yaml.Node, steps: Steps) -> Value:
        """Return the node's value, or None after reporting a mistake."""
        self.document.lines.setdefault(".".join(steps), node.start_mark.line + 1)
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
                already = self.document.lines[".".join(below)]
                self.document.report(below, f"it is already set on line {already}", line)
                continue
            self.document.lines[".".join(below)] = line
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
        if node.tag in _TEXT:
            return self._text(str(node.value), steps)
        self.document.report(steps, f"the tag {node.tag.replace(_TAG, '!!')} can't be used here")
        return None

    def _text(self, text: str, steps: Steps) -> str | None:
        """Return the text with its references resolved, except where they are resolved later."""
        filled, path = fill(text, self._environment), ".".join(steps)
        for problem in filled.problems:
            self.document.report(steps, problem)
        self.document.unset.update(dict.fromkeys(filled.unset))
        if filled.unset:
            of_rows = self.document.unresolved_in_rows
            (of_rows if _is_of_rows(steps) else self.document.unresolved).append(self.document.problems[-1])
        if filled.from_environment:
            self.document.from_environment.add(path)
        if filled.problems or _is_filled_later(steps):
            return None if filled.problems else text
        if filled.text != text:
            self.document.filled[path] = filled
        return filled.text


def _is_filled_later(steps: Steps) -> bool:
    """Whether the text may have secrets: a setting of Spark, the condition of a table, or an expression."""
    return steps[:-1] == _SPARK_SETTINGS or steps == _REMOTE or _is_of_rows(steps)


def _is_of_rows(steps: Steps) -> bool:
    """Whether the text is the condition of a table, or an expression of its columns."""
    setting = steps[_STEPS_TO_SETTINGS.get(steps[0], len(steps)) :] if steps else ()
    is_expression = len(setting) > 1 and setting[0] == "columns" and not setting[-1].isdecimal()
    return setting == ("where",) or is_expression


def _report_syntax(document: Document, error: yaml.MarkedYAMLError, text: bytes) -> None:
    what = ", ".join(part for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else None
    here = b"".join(text.splitlines()[line - 1 : line]) if line else b""
    hint = "; inside { } and [ ] put quotes around ${NAME}" if b"${" in here else ""
    document.report((), f"this is not YAML: {what}{hint}", line)


def _report_character(document: Document, error: yaml.reader.ReaderError, text: bytes) -> None:
    """Report the first byte that is not UTF-8, or the character that YAML does not allow."""
    try:
        decoded = text.decode("utf-8-sig")
        line = decoded[: error.position].count("\n") + 1
        what = f"this is not YAML: unacceptable character #x{ord(decoded[error.position]):04x}: {error.reason}"
    except UnicodeDecodeError as wrong:
        line = text[: wrong.start].count(b"\n") + 1
        what = f"it is not UTF-8: byte 0x{text[wrong.start]:02X}; save it as UTF-8"
    document.report((), what, line)
