"""Which version, and which files, a Direct Lake model has framed of a table (reference `direct-lake` §3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.guard.errors import FrameRefused, FramesUnreadable
from mirror_assets.direct_lake.guard.exports import Row, read_answer
from mirror_assets.direct_lake.time_travel.resolve import committed_by
from mirror_assets.source.ranges import TimePoint, parse_point
from mirror_assets.source.table_log import TableLog

_TABLE = ("ID", "TableName", "CurrentVersion")
_FILE = ("DeltaTableMetadataStorageID", "Location")
# Not framed yet.
_NO_VERSION = ("", "-1")


@dataclass(frozen=True)
class Frame:
    """A version of a table that a reader has framed.

    `files` are those that it says it needs, deletion vectors included, as it spells them in the table's folder; None
    where it doesn't say. They tell what the log no longer does, when its entries of that version are gone.
    """

    reader: str
    version: int
    files: tuple[str, ...] | None = None


def frame_at(log: TableLog, point: str) -> Frame:
    """The frame made at a version, or at a time like `2026-01-31 18:30:00` (UTC unless a zone follows).

    Raises FrameRefused, also for a time before the versions that the log still tells of.
    """
    try:
        at = parse_point(point)
    except ValueError as error:
        raise FrameRefused(log.uri, point, str(error)) from error
    if not isinstance(at, TimePoint):
        if at.version > log.newest():
            raise FrameRefused(log.uri, point, f"its newest version is {log.newest()}")
        return Frame("frame", at.version)
    version = committed_by(log, at.time_ms)
    if version is None:
        raise FrameRefused(log.uri, point, "its log begins later, or lacks the commits of that time")
    return Frame("frame", version)


def exported_frames(exports: Mapping[str, str], table: str | None = None) -> tuple[Frame, ...]:
    """The frames of a table by a model's exported answers; none where the table is not framed.

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
        answer = read_answer(text, source)
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
