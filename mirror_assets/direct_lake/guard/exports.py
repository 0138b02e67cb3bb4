"""Exported answers of queries on a model, as rows of text: CSV, rows as JSON, and what `executeQueries` answers."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.guard.errors import FramesUnreadable

Row = Mapping[str, str]
"""Values by column name; a blank is empty, or left out, as `executeQueries` does."""


@dataclass(frozen=True)
class Answer:
    """What a query answered; `columns` are those that any row has, or the header."""

    columns: frozenset[str]
    rows: tuple[Row, ...]


# `[ID]`, `ID`, and `Query1[ID]` are one column.
_COLUMN = re.compile(r"(?:.*\[)?([^\[\]]+)\]?\s*", re.DOTALL)
_DELIMITERS = ",;\t"


def read_answer(text: str, source: str) -> Answer:
    """The answer that a text is an export of; `source` names it in errors. Raises FramesUnreadable."""
    plain = text.removeprefix("\ufeff").lstrip().rstrip("\r\n")
    if not plain:
        raise FramesUnreadable(source, "it is empty")
    return _of_json(plain, source) if plain[0] in "[{" and not _is_header(plain) else _of_csv(plain, source)


def _is_header(text: str) -> bool:
    """Whether a text that begins with a bracket is CSV: DAX puts the names of columns in brackets."""
    return re.match(r"\[[A-Za-z]\w*\]", text) is not None


def _of_csv(text: str, source: str) -> Answer:
    header = text.split("\n", 1)[0]
    lines = csv.reader(io.StringIO(text), delimiter=max(_DELIMITERS, key=header.count), strict=True)
    try:
        names = [_name(name, source) for name in next(lines)]
        rows = [_row(names, line, lines.line_num, source) for line in lines if line]
    except csv.Error as error:
        raise FramesUnreadable(source, f"line {lines.line_num} is no CSV ({error})") from error
    return Answer(frozenset(names), tuple(rows))


def _row(names: Sequence[str], values: Sequence[str], line: int, source: str) -> Row:
    if len(values) != len(names):
        raise FramesUnreadable(source, f"line {line} has {len(values)} values, not {len(names)}")
    return dict(zip(names, values, strict=True))


def _of_json(text: str, source: str) -> Answer:
    try:
        answer = json.loads(text)
    except json.JSONDecodeError as error:
        raise FramesUnreadable(source, f"it is no JSON ({error})") from error
    rows = tuple(
        {_name(name, source): "" if value is None else str(value) for name, value in row.items()}
        for row in _rows_in(answer, source)
    )
    return Answer(frozenset(name for row in rows for name in row), rows)


def _rows_in(answer: object, source: str) -> Sequence[Mapping[str, object]]:
    """The rows themselves, or those of all tables of all results."""
    if isinstance(answer, dict):
        if "error" in answer:
            raise FramesUnreadable(source, f"it is an error: {json.dumps(answer['error'])}")
        inner = next((answer[name] for name in ("results", "tables", "rows") if name in answer), None)
        if isinstance(inner, list) and "rows" not in answer:
            return [row for part in inner for row in _rows_in(part, source)]
        answer = inner
    if not isinstance(answer, list) or not all(isinstance(row, dict) for row in answer):
        raise FramesUnreadable(source, "there are no rows in it")
    return answer


def _name(column: str, source: str) -> str:
    match = _COLUMN.fullmatch(column.strip())
    if match is None:
        raise FramesUnreadable(source, f"{column!r} is no name of a column")
    return match[1].strip()
