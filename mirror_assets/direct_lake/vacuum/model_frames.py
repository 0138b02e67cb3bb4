"""Which version, and which files, a Direct Lake model has framed of a table (reference `direct-lake` §3.1).

Named by version or time, or read from exported answers of DAX queries on the model: CSV, rows as JSON, and what
`executeQueries` answers.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mirror_assets.delta.points import TimePoint, parse_point
from mirror_assets.direct_lake.errors import FramesUnreadable, frame_refused
from mirror_assets.direct_lake.log_history import committed_by
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.errors import MirrorError

_TABLE = ("ID", "TableName", "CurrentVersion")
_FILE = ("DeltaTableMetadataStorageID", "Location")
# Not framed yet.
_NO_VERSION = ("", "-1")
# `[ID]`, `ID`, and `Query1[ID]` are one column.
_COLUMN = re.compile(r"(?:.*\[)?([^\[\]]+)\]?\s*", re.DOTALL)
_DELIMITERS = ",;\t"

Row = Mapping[str, str]
"""Values by column name; a blank is empty, or left out, as `executeQueries` does."""


@dataclass(frozen=True)
class Frame:
    """A version of a table that a reader has framed.

    `files` are the paths that it reports as needed, deletion vectors included, relative to the table's folder; None
    where it reports none. They are known even when the log's entries of that version are gone.
    """

    reader: str
    version: int
    files: tuple[str, ...] | None = None


def frame_at(log: TableLog, point: str) -> Frame:
    """Return the frame made at a version, or at a time like `2026-01-31 18:30:00` (UTC unless a zone follows).

    Raises SettingError for a version after the newest, and for a time before the versions that the log tells of.
    """
    try:
        at = parse_point(point)
    except ValueError as error:
        raise _refused(log, point, str(error)) from error
    if not isinstance(at, TimePoint):
        if at.version > log.newest():
            raise _refused(log, point, f"its newest version is {log.newest()}")
        return Frame("frame", at.version)
    version = committed_by(log, at.time_ms)
    if version is None:
        raise _refused(log, point, "its log begins later, or lacks the commits of that time")
    return Frame("frame", version)


def _refused(log: TableLog, point: str, why: str) -> MirrorError:
    return frame_refused(log.uri, point, why)


def exported_frames(exports: Mapping[str, str], table: str | None = None) -> tuple[Frame, ...]:
    """Read the frames of a table from a model's exported answers; none where the table is not framed.

    `exports` are texts by the names of their files: the answer of INFO.DELTATABLEMETADATASTORAGES(), and, if exact
    files shall count, that of INFO.PARQUETFILESTORAGES(); as CSV, or as JSON, also as `executeQueries` answers. `table`
    is the name in them; it may be left out when the model has one table only. Raises FramesUnreadable.
    """
    source = ", ".join(exports)
    tables, files = _sorted_out(exports)
    if tables is None:
        raise FramesUnreadable(source, "the answer of INFO.DELTATABLEMETADATASTORAGES() is missing")
    chosen = _chosen(tables, table, source)
    return tuple(_frame(row, files, source) for row in chosen if row["CurrentVersion"].strip() not in _NO_VERSION)


def _sorted_out(exports: Mapping[str, str]) -> tuple[Sequence[Row] | None, Sequence[Row] | None]:
    """The rows of either query, by the columns that they have; None where there is no answer of it."""
    tables: list[Row] | None = None
    files: list[Row] | None = None
    for source, text in exports.items():
        answer = _read_answer(text, source)
        if answer.columns >= set(_TABLE):
            tables = [*(tables or ()), *_with_blanks(answer.rows, _TABLE)]
        elif answer.columns >= set(_FILE):
            files = [*(files or ()), *_with_blanks(answer.rows, _FILE)]
        else:
            found = ", ".join(sorted(answer.columns)) or "none"
            raise FramesUnreadable(source, f"its columns are those of neither query ({found})")
    return tables, files


def _with_blanks(rows: Iterable[Row], columns: Sequence[str]) -> list[Row]:
    return [dict.fromkeys(columns, "") | dict(row) for row in rows]


def _chosen(tables: Sequence[Row], table: str | None, source: str) -> Sequence[Row]:
    names = sorted({row["TableName"] for row in tables})
    if table is None and len(names) > 1:
        raise FramesUnreadable(source, f"it has {len(names)} tables to choose from: {', '.join(names)}")
    if table is not None and table not in names:
        raise FramesUnreadable(source, f"it has no table {table}, only {', '.join(names) or 'none at all'}")
    return [row for row in tables if table is None or row["TableName"] == table]


def _frame(table: Row, files: Sequence[Row] | None, source: str) -> Frame:
    version = _whole_number(table["CurrentVersion"], source)
    reader = f"model table {table['TableName']}"
    if files is None:
        return Frame(reader, version)
    mine = [row for row in files if row["DeltaTableMetadataStorageID"] == table["ID"]]
    return Frame(reader, version, tuple(_needed(mine, table.get("RootLocation", ""), version, source)))


def _needed(files: Iterable[Row], root: str, version: int, source: str) -> Iterator[str]:
    """What is still of the frame, in the table's folder."""
    for row in files:
        if not _is_dropped(row, version, source):
            yield _below(root, row["Location"].strip(), source)
            if vector := row.get("DeletionVectorFileLocation", "").strip():
                yield _below(root, vector, source)


def _is_dropped(file: Row, version: int, source: str) -> bool:
    """Whether a framing up to this version has dropped the file; what was never dropped has a blank, or no version."""
    deleted, created = file.get("DeletedVersion", ""), file.get("CreatedVersion", "")
    if not deleted.strip():
        return False
    after = _whole_number(created, source) if created.strip() else -1
    return after < _whole_number(deleted, source) <= version


def _below(root: str, location: str, source: str) -> str:
    folder = f"{root.strip().rstrip('/')}/"
    if root.strip() and location.startswith(folder):
        return location[len(folder) :]
    if "://" in location:
        raise FramesUnreadable(source, f"{location} is not below the table's RootLocation {root.strip() or '(blank)'}")
    return location.lstrip("/")


def _whole_number(text: str, source: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise FramesUnreadable(source, f"{text!r} is no version") from None


@dataclass(frozen=True)
class _QueryResult:
    """What a query answered; `columns` are those that any row has, or the header."""

    columns: frozenset[str]
    rows: tuple[Row, ...]


def _read_answer(text: str, source: str) -> _QueryResult:
    """Read the answer that a text is an export of; `source` names it in errors. Raises FramesUnreadable."""
    plain = text.removeprefix("\ufeff").lstrip().rstrip("\r\n")
    if not plain:
        raise FramesUnreadable(source, "it is empty")
    return _of_json(plain, source) if plain[0] in "[{" and not _is_header(plain) else _of_csv(plain, source)


def _is_header(text: str) -> bool:
    """Whether a text that begins with a bracket is CSV: DAX puts the names of columns in brackets."""
    return re.match(r"\[[A-Za-z]\w*\]", text) is not None


def _of_csv(text: str, source: str) -> _QueryResult:
    header = text.split("\n", 1)[0]
    lines = csv.reader(io.StringIO(text), delimiter=max(_DELIMITERS, key=header.count), strict=True)
    try:
        names = [_name(name, source) for name in next(lines)]
        rows = [_row(names, line, lines.line_num, source) for line in lines if line]
    except csv.Error as error:
        raise FramesUnreadable(source, f"line {lines.line_num} is no CSV ({error})") from error
    return _QueryResult(frozenset(names), tuple(rows))


def _row(names: Sequence[str], values: Sequence[str], line: int, source: str) -> Row:
    if len(values) != len(names):
        raise FramesUnreadable(source, f"line {line} has {len(values)} values, not {len(names)}")
    return dict(zip(names, values, strict=True))


def _of_json(text: str, source: str) -> _QueryResult:
    try:
        answer = json.loads(text)
    except json.JSONDecodeError as error:
        raise FramesUnreadable(source, f"it is no JSON ({error})") from error
    rows = tuple(
        {_name(name, source): "" if value is None else str(value) for name, value in row.items()}
        for row in _rows_in(answer, source)
    )
    return _QueryResult(frozenset(name for row in rows for name in row), rows)


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
