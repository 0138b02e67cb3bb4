"""Find the readers of older versions of a table: models by their frames, the mirror, and the history.

The version that a model has framed (reference `direct-lake` §3.1) is named, also by a time, or read from the exported
result of a DAX query on the model: CSV, rows as JSON, or a response of `executeQueries`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.feature import read_by_features
from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeTable
from mirror_assets.features.direct_lake.errors import FRAME_REFUSED, FRAMES_UNREADABLE
from mirror_assets.features.direct_lake.framing import committed_by
from mirror_assets.landing.format import Manifest
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import TimePoint, VersionPoint, parse_point

MIRROR = "mirror"
"""A reader that starts again with a snapshot if its files are missing; a model keeps reading its framed version."""

_COLUMNS = ("TableName", "CurrentVersion")
# `CurrentVersion` of a table that was never framed.
_NOT_FRAMED = ("", "-1")
# `[ID]`, `ID`, and `Query1[ID]` are one column.
_COLUMN = re.compile(r"(?:.*\[)?([^\[\]]+)\]?\s*", re.DOTALL)
_DELIMITERS = ",;\t"

Row = Mapping[str, str]
"""Values by column name; a blank is empty, or missing, as in responses of `executeQueries`."""


@dataclass(frozen=True, order=True)
class Requirement:
    """A reader needs a version: all its files for a frame, those with its changes for the mirror's next commits."""

    reader: str
    version: int

    def __str__(self) -> str:
        """`mirror v4`."""
        return f"{self.reader} v{self.version}"


@dataclass(frozen=True)
class MirrorNeeds:
    """The version that the mirror has covered, and how it finds changes; None: also a history reads the table."""

    covered: int
    changes: Changes | None = Changes.FEED


class RetentionConsumers(NamedTuple):
    """The readers of older versions of the table: models by their frames, and the mirror."""

    frames: tuple[Requirement, ...] = ()
    mirror: MirrorNeeds | None = None


NO_CONSUMERS: Final = RetentionConsumers()


def frame_at(log: DeltaLog, point: str) -> Requirement:
    """Return the frame of a version, or of a time like `2026-01-31 18:30:00` (UTC unless a zone follows).

    Raises SettingError for a version after the newest, and for a time before the versions in the log.
    """
    try:
        at = parse_point(point)
    except ValueError as error:
        raise FRAME_REFUSED(uri=log.uri, frame=point, why=str(error)) from error
    if not isinstance(at, TimePoint):
        if at.version > log.newest():
            raise FRAME_REFUSED(uri=log.uri, frame=point, why=f"its newest version is {log.newest()}")
        return Requirement("frame", at.version)
    version = committed_by(log, at.time_ms)
    if version is None:
        raise FRAME_REFUSED(uri=log.uri, frame=point, why="its log begins later, or lacks the commits of that time")
    return Requirement("frame", version)


def exported_frames(exports: Mapping[str, str], table: str) -> tuple[Requirement, ...]:
    """Return the frames of a table from exported query results; none if the table is not framed.

    `exports` are results of INFO.DELTATABLEMETADATASTORAGES() by file name. In one of several tables, the table is
    found by its name, with or without the schema. Raises FRAMES_UNREADABLE.
    """
    own_names, frames = {table.casefold(), table.rpartition(".")[2].casefold()}, []
    for source, text in exports.items():
        columns, rows = _read_result(text, source)
        if not columns >= set(_COLUMNS):
            found = ", ".join(sorted(columns)) or "none"
            raise FRAMES_UNREADABLE(source=source, why=f"its columns are not those of the query ({found})")
        framed = [(row.get("TableName", ""), row.get("CurrentVersion", "").strip()) for row in rows]
        names = {name for name, _ in framed}
        own = {name for name in names if len(names) == 1 or name.casefold() in own_names}
        if not own:
            found = ", ".join(sorted(names)) or "none at all"
            raise FRAMES_UNREADABLE(source=source, why=f"it has no table {table}, only {found}")
        for name, version in framed:
            if name not in own or version in _NOT_FRAMED:
                continue
            if not version.isdecimal():
                raise FRAMES_UNREADABLE(source=source, why=f"{version!r} is not a version")
            frames.append(Requirement(f"model table {name}", int(version)))
    return tuple(frames)


def _read_result(text: str, source: str) -> tuple[frozenset[str], Sequence[Row]]:
    """Return the columns that any row has, or the header, and the rows. Raises FRAMES_UNREADABLE."""
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


def source_consumers(
    config: Config, table: TableSettings, log: DeltaLog, manifest: Manifest | None
) -> RetentionConsumers:
    """Return the readers of the source: its frames, a first load that isn't complete, and commits still to read.

    Before the mirror's first run, its covered version is the one before `start`. A covered version newer than the
    source's newest one belongs to an earlier table at this address, and is ignored.
    Raises SettingError (frames_unreadable, FRAME_REFUSED), and what the history's log raises.
    """
    settings, loading = DirectLakeTable.of(table).direct_lake, manifest.loading if manifest else None
    frames = named_frames(log, settings.frames, settings.exports, str(table.name))
    if manifest is not None:
        mirrored = loading.key.last if loading else manifest.covered
    elif isinstance(table.start, VersionPoint):
        mirrored = table.start.version - 1
    elif isinstance(table.start, TimePoint):
        before = committed_by(log, table.start.time_ms - 1)
        mirrored = -1 if before is None else before
    else:
        mirrored = None
    if loading is not None and loading.key.last <= log.newest():
        frames = (*frames, Requirement(MIRROR, loading.key.last))
    kept = read_by_features(config, table)
    covered = [version for version in (mirrored, kept) if version is not None and version <= log.newest()]
    changes = table.changes if kept is None else None
    return RetentionConsumers(frames, MirrorNeeds(min(covered), changes) if covered else None)


def named_frames(log: DeltaLog, points: Sequence[str], exports: Sequence[Path], table: str) -> tuple[Requirement, ...]:
    """Return the frames at `points` (versions or times) and the table's in `exports`, files with results of the query.

    Raises SettingError (frames_unreadable, FRAME_REFUSED).
    """
    frames = tuple(frame_at(log, point) for point in points)
    texts = {}
    for path in exports:
        try:
            texts[str(path)] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FRAMES_UNREADABLE(source=str(path), why=f"it can't be read ({error})") from error
    return (*frames, *exported_frames(texts, table))
