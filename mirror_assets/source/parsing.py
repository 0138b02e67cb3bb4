"""Files of a Delta log that are lines of JSON: commits, compacted commits, and the top of a v2 checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypedDict
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

# Spark and delta-rs write it first, so the column statistics behind it need no parsing.
_RECORDS_FIRST = re.compile(r'\s*\{\s*"numRecords"\s*:\s*(\d+)')
# Delta Live Tables make a table before they know its columns, and leave the schema out; so does Spark, of an empty one.
_NO_COLUMNS = '{"type":"struct","fields":[]}'
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGIT = {character: digit for digit, character in enumerate(_Z85)}
# 16 bytes of a UUID, four bytes in five characters; what stands before them is a folder.
_UUID_LENGTH = 20


class RawVector(TypedDict, total=False):
    """The descriptor of a deletion vector in an add or remove action; `offset` may be missing."""

    storageType: str
    pathOrInlineDv: str
    offset: int | None
    sizeInBytes: int
    cardinality: int


class RawMetadata(TypedDict, total=False):
    """A metaData action."""

    id: str
    schemaString: str | None
    configuration: dict[str, str] | None
    partitionColumns: list[str] | None


class RawProtocol(TypedDict, total=False):
    """A protocol action."""

    minReaderVersion: int
    minWriterVersion: int
    readerFeatures: list[str] | None
    writerFeatures: list[str] | None


class _Add(TypedDict, total=False):
    path: str
    size: int
    modificationTime: int
    dataChange: bool
    partitionValues: dict[str, str | None] | None
    stats: str | None
    deletionVector: RawVector | None
    tags: dict[str, str] | None


class _Remove(TypedDict, total=False):
    path: str
    size: int | None
    deletionTimestamp: int | None
    dataChange: bool
    stats: str | None
    deletionVector: RawVector | None


class _Path(TypedDict, total=False):
    path: str
    size: int | None


class _CommitInfo(TypedDict, total=False):
    timestamp: int
    inCommitTimestamp: int
    operation: str
    operationMetrics: dict[str, object] | None
    tags: dict[str, str] | None


class _Line(TypedDict, total=False):
    add: _Add
    remove: _Remove
    cdc: _Path
    sidecar: _Path
    commitInfo: _CommitInfo
    metaData: RawMetadata
    protocol: RawProtocol


def parse_actions(data: bytes, paths: TablePaths) -> Actions:
    """Parse one file of the log.

    Raises ValueError, KeyError, TypeError or SchemaUnreadable when the file is not what Delta writes.
    """
    added, removed, change_files, sidecars = [], [], [], []
    info, metadata, protocol = CommitInfo(), None, None
    for text in filter(str.strip, data.decode().split("\n")):
        line = _line(text)
        if "add" in line:
            added.append(_live(line["add"], paths))
        if "remove" in line:
            removed.append(_tombstone(line["remove"], paths))
        if "cdc" in line:
            change_files.append(_change_file(line["cdc"], paths))
        if "sidecar" in line:
            sidecars.append(line["sidecar"]["path"])
        if "commitInfo" in line:
            info = _commit_info(line["commitInfo"])
        if "metaData" in line:
            metadata = read_metadata(line["metaData"])
        if "protocol" in line:
            protocol = read_protocol(line["protocol"])
    files = tuple(added), tuple(removed), tuple(change_files)
    return Actions(*files, info, metadata, protocol, tuple(sidecars))


def parse_info(data: bytes) -> CommitInfo:
    """Parse a commit's commitInfo alone, which costs the same however many files the commit has."""
    for text in data.decode().split("\n"):
        if '"commitInfo"' in text and "commitInfo" in (line := _line(text)):
            return _commit_info(line["commitInfo"])
    return CommitInfo()


def read_metadata(action: RawMetadata) -> Metadata:
    """Return the action as a value; one without a schema has no columns. Raises KeyError, or SchemaUnreadable."""
    return Metadata(
        table_id=action["id"],
        schema_string=canonical(action.get("schemaString") or _NO_COLUMNS),
        configuration=action.get("configuration") or {},
        partition_columns=tuple(action.get("partitionColumns") or ()),
    )


def read_protocol(action: RawProtocol) -> Protocol:
    """Return the action as a value. Raises KeyError."""
    reading, writing = action.get("readerFeatures") or [], action.get("writerFeatures") or []
    return Protocol(
        action["minReaderVersion"], action["minWriterVersion"], frozenset([*reading, *writing]), frozenset(reading)
    )


def read_vector(raw: RawVector | None, paths: TablePaths) -> Vector | None:
    """Return the descriptor as a value. Raises KeyError or ValueError when it is not what Delta writes."""
    if raw is None:
        return None
    kind, stored = raw["storageType"], raw["pathOrInlineDv"]
    offset = raw.get("offset")
    name = f"{kind}{stored}" if offset is None else f"{kind}{stored}@{offset}"
    return Vector(name, _vector_path(kind, stored, paths), raw["sizeInBytes"], raw["cardinality"])


def partition_values(raw: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """Return an add action's partition values; an empty text is NULL, too ("Partition Value Serialization")."""
    return {name: value or None for name, value in raw.items()}


def stored_rows(stats: str | None) -> int | None:
    """Return the rows in a file by its statistics, including those that a deletion vector hides; None if unknown."""
    if not stats:
        return None
    first = _RECORDS_FIRST.match(stats)
    if first:
        return int(first[1])
    records: int | None = json.loads(stats).get("numRecords")
    return records


def z85_decoded(text: str) -> bytes:
    """Decode Z85 (ZeroMQ's RFC 32). Raises ValueError for another text."""
    if len(text) % 5 or not _DIGIT.keys() >= set(text):
        raise ValueError(f"{text!r} is no Z85")
    return b"".join(_four_bytes(text[start : start + 5]) for start in range(0, len(text), 5))


def _line(text: str) -> _Line:
    line: _Line = json.loads(text)
    if not isinstance(line, dict):
        raise TypeError(f"not an action: {text[:80]!r}")
    return line


def _live(add: _Add, paths: TablePaths) -> LiveFile:
    return LiveFile(
        path=paths.decoded(add["path"]),
        bytes=add["size"],
        rows=stored_rows(add.get("stats")),
        modified_ms=add.get("modificationTime") or 0,
        partition=partition_values(add.get("partitionValues") or {}),
        vector=read_vector(add.get("deletionVector"), paths),
        tags=add.get("tags") or {},
        as_listed=as_listed(add["path"]),
        data_change=add["dataChange"],
    )


def _tombstone(remove: _Remove, paths: TablePaths) -> Tombstone:
    return Tombstone(
        path=paths.decoded(remove["path"]),
        vector=read_vector(remove.get("deletionVector"), paths),
        deleted_ms=remove.get("deletionTimestamp") or 0,
        bytes=remove.get("size"),
        rows=stored_rows(remove.get("stats")),
        as_listed=as_listed(remove["path"]),
        data_change=remove["dataChange"],
    )


def _change_file(cdc: _Path, paths: TablePaths) -> ChangeFile:
    return ChangeFile(paths.decoded(cdc["path"]), cdc.get("size") or 0)


def _commit_info(info: _CommitInfo) -> CommitInfo:
    in_commit = info.get("inCommitTimestamp")
    return CommitInfo(
        operation=info.get("operation", ""),
        metrics=dict(_whole_metrics(info)),
        timestamp_ms=info.get("timestamp") if in_commit is None else in_commit,
        in_commit_ms=in_commit,
        keeps_row_ids=(info.get("tags") or {}).get("delta.rowTracking.preserved") == "true",
    )


def _whole_metrics(info: _CommitInfo) -> Iterator[tuple[str, int]]:
    """Yield the whole numbers among the metrics: Spark writes them as strings, delta-rs as numbers."""
    for name, value in (info.get("operationMetrics") or {}).items():
        if isinstance(value, int):
            yield name, value
        elif isinstance(value, str) and value.isdecimal():
            yield name, int(value)


def _vector_path(kind: str, stored: str, paths: TablePaths) -> str | None:
    if kind == "i":
        return None
    if kind == "p":
        return paths.decoded(stored)
    if kind != "u":
        raise ValueError(f"unknown storage type {kind!r} of a deletion vector")
    folder, encoded = stored[:-_UUID_LENGTH], stored[-_UUID_LENGTH:]
    name = f"deletion_vector_{UUID(bytes=z85_decoded(encoded))}.bin"
    return f"{folder}/{name}" if folder else name


def _four_bytes(characters: str) -> bytes:
    number = 0
    for character in characters:
        number = number * 85 + _DIGIT[character]
    if number >= 1 << 32:
        raise ValueError(f"{characters!r} is no Z85")
    return number.to_bytes(4, "big")
