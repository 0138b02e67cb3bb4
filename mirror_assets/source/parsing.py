"""Files of a Delta log that are lines of JSON: commits, compacted commits, and the top of a v2 checkpoint.

Only fields that decide what a version contains can make a file unreadable. Every other field may be missing, null or of
another type. Where Delta on Spark reads a value of another type, the same value is read here.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b85decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from mirror_assets.source.actions import (
    Actions,
    ChangeFile,
    CommitInfo,
    LiveFile,
    Metadata,
    Protocol,
    Tombstone,
    Vector,
)
from mirror_assets.source.log_paths import TablePaths, as_listed
from mirror_assets.source.schema import canonical

# Spark and delta-rs write it first, so the statistics of columns after it need no parsing. A count of 19 digits may
# exceed 64 bits; one without an end may be cut off.
RECORDS_FIRST = r'^\s*\{\s*"numRecords"\s*:\s*(?P<rows>\d{1,18})\s*[,}]'
_RECORDS_FIRST = re.compile(RECORDS_FIRST)
_MOST = (1 << 63) - 1
# Delta Live Tables create a table before they know its columns, and omit the schema; Spark omits an empty one.
_NO_COLUMNS = '{"type":"struct","fields":[]}'
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_BASE85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_BASE85 = str.maketrans(_Z85, _BASE85)
# 16 bytes of a UUID, four bytes in five characters; a folder may come before them.
_UUID_LENGTH = 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A line has one action. Delta on Spark reads the first of these that is not null.
_KINDS = (
    "add",
    "remove",
    "metaData",
    "txn",
    "protocol",
    "cdc",
    "checkpointMetadata",
    "sidecar",
    "domainMetadata",
    "commitInfo",
)
# Kinds that decide nothing about the files of a version, and none.
_FREE_KINDS = ("txn", "checkpointMetadata", "domainMetadata", "commitInfo", "")
_LISTS_READER_FEATURES = 3
# The years 1 to 9999 in ms since 1970: later times can't be shown.
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000, 253_402_300_799_999

RawAction = Mapping[str, Any]
"""An action of the log by the names of Delta's protocol, from JSON or from a checkpoint's columns."""


class InvalidAction(ValueError):
    """An action lacks a field that Delta's protocol requires, or has an invalid one."""


@dataclass
class _Collected:
    """The actions read so far from one file of the log."""

    paths: TablePaths
    added: dict[tuple[str, str], LiveFile] = field(default_factory=dict)
    removed: list[Tombstone] = field(default_factory=list)
    change_files: list[ChangeFile] = field(default_factory=list)
    sidecars: list[str] = field(default_factory=list)
    info: CommitInfo = field(default_factory=CommitInfo)
    metadata: Metadata | None = None
    protocol: Protocol | None = None

    def read(self, line: bytes) -> None:
        """Add the action in this line. Raises InvalidAction and SCHEMA_UNREADABLE."""
        kind, action = _action(line)
        if kind == "add":
            file = live_file(action, self.paths, stored_rows(action.get("stats")))
            self.added[file.identity] = file
        elif kind == "remove":
            gone = tombstone(action, self.paths, stored_rows(action.get("stats")))
            # Of a file that is added and removed, in this order, the remove counts.
            self.added.pop(gone.identity, None)
            self.removed.append(gone)
        elif kind == "cdc":
            path, spelling = self.paths.named(_text(action, "path"))
            size, partition = _count(action.get("size")) or 0, _partition(action) or {}
            self.change_files.append(ChangeFile(path, size, partition, spelling))
        elif kind == "sidecar":
            self.sidecars.append(_text(action, "path"))
        elif kind == "commitInfo":
            self.info = _commit_info(action)
        elif kind == "metaData":
            self.metadata = read_metadata(action)
        elif kind == "protocol":
            self.protocol = read_protocol(action)


def parse_actions(data: bytes, paths: TablePaths) -> Actions:
    """Parse one file of the log. Raises InvalidAction, which names line and field, or SCHEMA_UNREADABLE."""
    found = _Collected(paths)
    for number, line in enumerate(data.removeprefix(_BYTE_ORDER_MARK).splitlines(), 1):
        if line.strip():
            try:
                found.read(line)
            except InvalidAction as error:
                raise InvalidAction(f"line {number}: {error}") from error
    files = tuple(found.added.values()), tuple(found.removed), tuple(found.change_files)
    return Actions(*files, found.info, found.metadata, found.protocol, tuple(found.sidecars))


def is_whole(data: bytes) -> bool:
    """Whether a commit file isn't empty, and doesn't end within an action."""
    text = data.removeprefix(_BYTE_ORDER_MARK)
    if not text.strip():
        return False
    if text.endswith((b"\n", b"\r")):
        return True
    try:
        json.loads(text[text.rfind(b"\n") + 1 :].decode(errors="replace"))
    except (ValueError, RecursionError):
        return False
    return True


def parse_info(data: bytes) -> CommitInfo:
    """Parse a commit's commitInfo only, at the same cost whatever number of files the commit has."""
    for text in data.removeprefix(_BYTE_ORDER_MARK).splitlines():
        if b'"commitInfo"' in text:
            with suppress(InvalidAction):
                kind, action = _action(text)
                if kind == "commitInfo":
                    return _commit_info(action)
    return CommitInfo()


def live_file(add: RawAction, paths: TablePaths, rows: int | None) -> LiveFile:
    """Return an add action as a value; `rows` are those of its statistics.

    Delta on Spark reads an add action without `dataChange` as one that changes no data.
    """
    path = _text(add, "path")
    decoded, spelling = paths.named(path)
    return LiveFile(
        path=decoded,
        bytes=_count(add.get("size")) or 0,
        rows=rows,
        modified_ms=_number(add.get("modificationTime")) or 0,
        partition=_partition(add) or {},
        vector=read_vector(add.get("deletionVector"), paths),
        tags=_texts(add.get("tags")),
        as_listed=as_listed(path),
        data_change=_flag(add, "dataChange", missing=False),
        base_row_id=_number(add.get("baseRowId")),
        row_commit_version=_number(add.get("defaultRowCommitVersion")),
        spelling=spelling,
    )


def tombstone(remove: RawAction, paths: TablePaths, rows: int | None) -> Tombstone:
    """Return a remove action as a value; `rows` are those of its statistics.

    Delta on Spark reads a remove action without `dataChange` as one that changes data.
    """
    path = _text(remove, "path")
    decoded, spelling = paths.named(path)
    return Tombstone(
        path=decoded,
        vector=read_vector(remove.get("deletionVector"), paths),
        deleted_ms=_number(remove.get("deletionTimestamp")) or 0,
        bytes=_count(remove.get("size")),
        rows=rows,
        as_listed=as_listed(path),
        data_change=_flag(remove, "dataChange", missing=True),
        partition=_partition(remove),
        base_row_id=_number(remove.get("baseRowId")),
        row_commit_version=_number(remove.get("defaultRowCommitVersion")),
        spelling=spelling,
    )


def read_metadata(action: RawAction) -> Metadata:
    """Return a metaData action as a value; one without a schema has no columns.

    Raises InvalidAction and SCHEMA_UNREADABLE.
    """
    table_id, schema = action.get("id"), action.get("schemaString")
    if not isinstance(table_id, str | int):
        raise InvalidAction("the field `id` is missing or no text")
    if isinstance(schema, Mapping):  # Spark reads it as its text
        schema = json.dumps(schema)
    if schema is not None and not isinstance(schema, str):
        raise InvalidAction("the field `schemaString` is no text")
    columns = _names(action, "partitionColumns")
    if columns is None:
        raise InvalidAction("the field `partitionColumns` is missing")
    return Metadata(str(table_id), canonical(schema or _NO_COLUMNS), _texts(action.get("configuration")), columns)


def read_protocol(action: RawAction) -> Protocol:
    """Return a protocol action as a value. Raises InvalidAction."""
    reader = _number(action.get("minReaderVersion"))
    if reader is None:
        raise InvalidAction("the field `minReaderVersion` is missing or no number")
    reading, writing = _names(action, "readerFeatures"), _names(action, "writerFeatures")
    if reading is None and reader == _LISTS_READER_FEATURES:
        raise InvalidAction(f"reader version {reader} requires the field `readerFeatures`")
    features = frozenset(reading or ())
    return Protocol(reader, _number(action.get("minWriterVersion")) or 0, features | frozenset(writing or ()), features)


def read_vector(raw: RawAction | None, paths: TablePaths) -> Vector | None:
    """Return the descriptor of a deletion vector as a value. Raises InvalidAction."""
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise InvalidAction("the field `deletionVector` is no object")
    kind, stored = _text(raw, "storageType"), _text(raw, "pathOrInlineDv")
    size, hidden = _count(raw.get("sizeInBytes")), _count(raw.get("cardinality"))
    offset = raw.get("offset")
    if offset is not None and (offset := _count(offset)) is None:
        raise InvalidAction("the field `offset` of a deletion vector is no number")
    if size is None or hidden is None:
        raise InvalidAction("`sizeInBytes` and `cardinality` of a deletion vector must be numbers")
    name = f"{kind}{stored}" if offset is None else f"{kind}{stored}@{offset}"
    return Vector(name, _vector_path(kind, stored, paths), size, hidden, offset, stored if kind == "i" else "")


def _vector_path(kind: str, stored: str, paths: TablePaths) -> str | None:
    """Return the path of a deletion vector's file; None for one that is stored in the log."""
    if kind == "i":
        return None
    if kind == "p":
        return paths.decoded(stored)
    if kind != "u":
        raise InvalidAction(f"unknown storage type {kind!r} of a deletion vector")
    folder, encoded = stored[:-_UUID_LENGTH], stored[-_UUID_LENGTH:]
    try:
        file = f"deletion_vector_{UUID(bytes=z85_decoded(encoded))}.bin"
    except ValueError as error:
        raise InvalidAction(f"the deletion vector has no valid path: {error}") from error
    return f"{folder}/{file}" if folder else file


def stored_rows(stats: object) -> int | None:
    """Return the rows in a file by its statistics, including those that a deletion vector hides; None if unknown.

    Statistics are optional, so those that are no JSON, are cut off or count in another type are ignored.
    """
    if isinstance(stats, str):
        first = _RECORDS_FIRST.match(stats)
        if first:
            return int(first[1])
        try:
            stats = json.loads(stats)
        except (ValueError, RecursionError):
            return None
    records = stats.get("numRecords") if isinstance(stats, Mapping) else None
    is_count = isinstance(records, int) and not isinstance(records, bool) and 0 <= records <= _MOST
    return records if is_count else None


def deleted_rows(checksum: bytes | None) -> int | None:
    """Return the number of rows that deletion vectors hide, by a version's checksum file; None if unknown.

    The file is optional, so one that is cut off or of another form is ignored.
    """
    try:
        content = json.loads(checksum or b"{}")
    except (ValueError, RecursionError):
        return None
    return _count(content.get("numDeletedRecordsOpt")) if isinstance(content, dict) else None


def z85_decoded(text: str) -> bytes:
    """Decode Z85 (ZeroMQ's RFC 32), which is Python's base 85 with another alphabet. Raises ValueError."""
    try:
        data = b85decode(text.translate(_TO_BASE85))
    except ValueError:
        data = None
    if data is None or len(text) % 5 or not set(text) <= set(_Z85):
        raise ValueError(f"{text!r} is not Z85")
    return data


def _action(text: bytes) -> tuple[str, RawAction]:
    """Return kind and fields of the action in a line; kind "" for none, or one of no known kind."""
    try:
        # Java reads bytes that are not UTF-8 as replacement characters.
        line = json.loads(text.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise InvalidAction(f"{_shown(text)} is not JSON ({error})") from error
    if not isinstance(line, dict):
        raise InvalidAction(f"{_shown(text)} is not an action")
    kind = next((kind for kind in _KINDS if line.get(kind) is not None), "")
    action = line.get(kind)
    if isinstance(action, dict):
        return kind, action
    if kind in _FREE_KINDS:
        return "", {}
    raise InvalidAction(f"`{kind}` is not an action: {_shown(text)}")


def _shown(text: bytes) -> str:
    return repr(text[:80].decode(errors="replace"))


def _commit_info(info: RawAction) -> CommitInfo:
    operation, tags = info.get("operation"), info.get("tags")
    written, in_commit = _time(info.get("timestamp")), _time(info.get("inCommitTimestamp"))
    preserved = tags.get("delta.rowTracking.preserved") if isinstance(tags, Mapping) else None
    return CommitInfo(
        operation=operation if isinstance(operation, str) else "",
        timestamp_ms=written if in_commit is None else in_commit,
        in_commit_ms=in_commit,
        keeps_row_ids=str(preserved).lower() == "true",
    )


def _text(action: RawAction, name: str) -> str:
    """Return a required field."""
    value = action.get(name)
    if not isinstance(value, str):
        raise InvalidAction(f"the field `{name}` is missing or no text")
    return value


def _names(action: RawAction, name: str) -> tuple[str, ...] | None:
    """Return a list of names; None if it is missing."""
    values = action.get(name)
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidAction(f"the field `{name}` is no list of names")
    return tuple(values)


def _number(value: object) -> int | None:
    """Return a whole number of 64 bits, also one written as text or with a fraction, as Jackson does; else None."""
    if value is None:
        return None
    number: int | None = None
    if isinstance(value, int):
        number = None if isinstance(value, bool) else value
    elif isinstance(value, float) and math.isfinite(value):
        number = int(value)
    elif isinstance(value, str):
        with suppress(ValueError):
            number = int(value)
    return number if number is not None and -_MOST <= number <= _MOST else None


def _count(value: object) -> int | None:
    """Return a whole number that is not negative; None for others."""
    number = _number(value)
    return None if number is None or number < 0 else number


def _time(value: object) -> int | None:
    number = _number(value)
    return number if number is not None and _FIRST_TIME <= number <= _LAST_TIME else None


def _flag(action: RawAction, name: str, *, missing: bool) -> bool:
    """Return a boolean, also one that is written as text or number, as Jackson does."""
    value = action.get(name)
    if value is None:
        return missing
    if isinstance(value, bool | int):
        return bool(value)
    if isinstance(value, str) and value.lower() in ("true", "false", ""):
        return value.lower() == "true"
    raise InvalidAction(f"the field `{name}` is neither true nor false")


def _partition(action: RawAction) -> dict[str, str | None] | None:
    """Return the partition values by physical names, as the log has them; None if the action has none."""
    values = action.get("partitionValues")
    if values is None:
        return None
    pairs = _pairs(values)
    if pairs is None:
        raise InvalidAction("the field `partitionValues` is no object")
    found: dict[str, str | None] = {}
    for name, value in pairs.items():
        if value is None or isinstance(value, str):
            found[name] = value
        elif isinstance(value, _SCALARS):
            found[name] = json.dumps(value)
        else:
            raise InvalidAction(f"the partition value of `{name}` is no text")
    return found


def _texts(values: object) -> dict[str, str]:
    """Return the names that have a value, such as tags or properties; none if it is no object."""
    pairs = _pairs(values) if values else None
    if not pairs:
        return {}
    scalars = ((name, value) for name, value in pairs.items() if isinstance(value, _SCALARS))
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in scalars}


_SCALARS = (str, bool, int, float)


def _pairs(values: object) -> Mapping[str, object] | None:
    """Return an object of JSON, or a map of Arrow, which is a list of pairs; None for others."""
    if isinstance(values, Mapping):
        return values
    if isinstance(values, list) and all(isinstance(pair, tuple) for pair in values):
        return dict(values)
    return None
