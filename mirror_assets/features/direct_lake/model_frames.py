"""The version of a table that a Direct Lake model has framed (reference `direct-lake` §3.1).

Named by version or time, or read from the exported result of a DAX query on the model: CSV, rows as JSON, or a response
of `executeQueries`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mirror_assets.features.direct_lake.errors import FRAME_REFUSED, FRAMES_UNREADABLE
from mirror_assets.features.direct_lake.framing import committed_by
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import TimePoint, parse_point

_COLUMNS = ("TableName", "CurrentVersion")
# `CurrentVersion` of a table that was never framed.
_NOT_FRAMED = ("", "-1")
# `[ID]`, `ID`, and `Query1[ID]` are one column.
_COLUMN = re.compile(r"(?:.*\[)?([^\[\]]+)\]?\s*", re.DOTALL)
_DELIMITERS = ",;\t"

Row = Mapping[str, str]
"""Values by column name; a blank is empty, or missing, as in responses of `executeQueries`."""


@dataclass(frozen=True)
class Frame:
    """A version of a table that a reader has framed."""

    reader: str
    version: int


def frame_at(log: DeltaLog, point: str) -> Frame:
    """Return the frame made at a version, or at a time like `2026-01-31 18:30:00` (UTC unless a zone follows).

    Raises SettingError for a version after the newest, and for a time before the versions in the log.
    """
    try:
        at = parse_point(point)
    except ValueError as error:
        raise FRAME_REFUSED(uri=log.uri, frame=point, why=str(error)) from error
    if not isinstance(at, TimePoint):
        if at.version > log.newest():
            raise FRAME_REFUSED(uri=log.uri, frame=point, why=f"its newest version is {log.newest()}")
        return Frame("frame", at.version)
    version = committed_by(log, at.time_ms)
    if version is None:
        raise FRAME_REFUSED(uri=log.uri, frame=point, why="its log begins later, or lacks the commits of that time")
    return Frame("frame", version)


def exported_frames(exports: Mapping[str, str], table: str | None = None) -> tuple[Frame, ...]:
    """Return the frames of a table from exported query results; none if the table is not framed.

    `exports` are results of INFO.DELTATABLEMETADATASTORAGES() by file name. `table` is the name in them; optional if
    they have one table. Raises frames_unreadable.
    """
    source = ", ".join(exports)
    tables: list[Row] = []
    for name, text in exports.items():
        columns, rows = _read_result(text, name)
        if not columns >= set(_COLUMNS):
            found = ", ".join(sorted(columns)) or "none"
            raise FRAMES_UNREADABLE(source=name, why=f"its columns are not those of the query ({found})")
        tables += [dict.fromkeys(_COLUMNS, "") | dict(row) for row in rows]
    names = sorted({row["TableName"] for row in tables})
    if table is None and len(names) > 1:
        raise FRAMES_UNREADABLE(source=source, why=f"it has {len(names)} tables to choose from: {', '.join(names)}")
    if table is not None and table not in names:
        raise FRAMES_UNREADABLE(source=source, why=f"it has no table {table}, only {', '.join(names) or 'none at all'}")
    frames = []
    for row in tables:
        version = row["CurrentVersion"].strip()
        if table not in (None, row["TableName"]) or version in _NOT_FRAMED:
            continue
        if not version.isdecimal():
            raise FRAMES_UNREADABLE(source=source, why=f"{version!r} is not a version")
        frames.append(Frame(f"model table {row['TableName']}", int(version)))
    return tuple(frames)


def _read_result(text: str, source: str) -> tuple[frozenset[str], Sequence[Row]]:
    """Return the columns that any row has, or the header, and the rows. Raises frames_unreadable."""
    plain = text.removeprefix("\ufeff").lstrip().rstrip("\r\n")
    if not plain:
        raise FRAMES_UNREADABLE(source=source, why="it is empty")
    # DAX puts column names in brackets, so a CSV header may begin like JSON.
    if plain[0] in "[{" and not re.match(r"\[[A-Za-z]\w*\]", plain):
        try:
            found = json.loads(plain)
        except json.JSONDecodeError as error:
            raise FRAMES_UNREADABLE(source=source, why=f"it is not JSON ({error})") from error
        rows = [
            {_column(name, source): "" if value is None else str(value) for name, value in row.items()}
            for row in _json_rows(found, source)
        ]
        return frozenset(name for row in rows for name in row), rows
    lines = csv.reader(io.StringIO(plain), delimiter=max(_DELIMITERS, key=plain.split("\n", 1)[0].count), strict=True)
    rows = []
    try:
        names = [_column(name, source) for name in next(lines)]
        for values in filter(None, lines):
            if len(values) != len(names):
                raise FRAMES_UNREADABLE(
                    source=source, why=f"line {lines.line_num} has {len(values)} values, not {len(names)}"
                )
            rows.append(dict(zip(names, values, strict=True)))
    except csv.Error as error:
        raise FRAMES_UNREADABLE(source=source, why=f"line {lines.line_num} is not CSV ({error})") from error
    return frozenset(names), rows


def _json_rows(result: object, source: str) -> Sequence[Mapping[str, object]]:
    """Return the rows themselves, or those of all tables of all results."""
    if isinstance(result, dict):
        if "error" in result:
            raise FRAMES_UNREADABLE(source=source, why=f"it is an error: {json.dumps(result['error'])}")
        inner = next((result[name] for name in ("results", "tables", "rows") if name in result), None)
        if isinstance(inner, list) and "rows" not in result:
            return [row for part in inner for row in _json_rows(part, source)]
        result = inner
    if not isinstance(result, list) or not all(isinstance(row, dict) for row in result):
        raise FRAMES_UNREADABLE(source=source, why="there are no rows in it")
    return result


def _column(name: str, source: str) -> str:
    match = _COLUMN.fullmatch(name.strip())
    if match is None:
        raise FRAMES_UNREADABLE(source=source, why=f"{name!r} is not the name of a column")
    return match[1].strip()
