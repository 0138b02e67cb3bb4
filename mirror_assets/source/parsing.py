"""Files of a Delta log that are lines of JSON: commits, compacted commits, and the top of a v2 checkpoint."""

from __future__ import annotations

import json
import re
from base64 import b85decode
from collections.abc import Mapping
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

# Spark and delta-rs write it first, so the statistics of columns after it need no parsing.
RECORDS_FIRST = r'^\s*\{\s*"numRecords"\s*:\s*(?P<rows>\d+)'
_RECORDS_FIRST = re.compile(RECORDS_FIRST)
# Delta Live Tables create a table before they know its columns, and omit the schema; Spark omits an empty one.
_NO_COLUMNS = '{"type":"struct","fields":[]}'
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_BASE85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_BASE85 = str.maketrans(_Z85, _BASE85)
# 16 bytes of a UUID, four bytes in five characters; a folder may come before them.
_UUID_LENGTH = 20

RawAction = Mapping[str, Any]
"""An action of the log by the names of Delta's protocol, from JSON or from a checkpoint's columns."""


def parse_actions(data: bytes, paths: TablePaths) -> Actions:
    """Parse one file of the log.

    Raises ValueError, KeyError, TypeError or schema_unreadable when the file is not what Delta writes.
    """
    added, removed, change_files, sidecars = [], [], [], []
    info, metadata, protocol = CommitInfo(), None, None
    for text in filter(str.strip, data.decode().split("\n")):
        for kind, action in _line(text).items():
            if kind == "add":
                rows = stored_rows(action.get("stats"))
                added.append(live_file(action, paths, rows, data_change=action["dataChange"]))
            elif kind == "remove":
                rows = stored_rows(action.get("stats"))
                removed.append(tombstone(action, paths, rows, data_change=action["dataChange"]))
            elif kind == "cdc":
                partition = _partition(action) or {}
                change_files.append(ChangeFile(paths.decoded(action["path"]), action.get("size") or 0, partition))
            elif kind == "sidecar":
                sidecars.append(action["path"])
            elif kind == "commitInfo":
                info = _commit_info(action)
            elif kind == "metaData":
                metadata = read_metadata(action)
            elif kind == "protocol":
                protocol = read_protocol(action)
    files = tuple(added), tuple(removed), tuple(change_files)
    return Actions(*files, info, metadata, protocol, tuple(sidecars))


def parse_info(data: bytes) -> CommitInfo:
    """Parse a commit's commitInfo only, at the same cost whatever number of files the commit has."""
    for text in data.decode().split("\n"):
        if '"commitInfo"' in text and "commitInfo" in (line := _line(text)):
            return _commit_info(line["commitInfo"])
    return CommitInfo()


def live_file(add: RawAction, paths: TablePaths, rows: int | None, *, data_change: bool = True) -> LiveFile:
    """Return an add action as a value; `rows` are those of its statistics."""
    return LiveFile(
        path=paths.decoded(add["path"]),
        bytes=add["size"],
        rows=rows,
        modified_ms=add.get("modificationTime") or 0,
        partition=_partition(add) or {},
        vector=read_vector(add.get("deletionVector"), paths),
        tags=dict(add.get("tags") or ()),
        as_listed=as_listed(add["path"]),
        data_change=data_change,
        base_row_id=add.get("baseRowId"),
        row_commit_version=add.get("defaultRowCommitVersion"),
    )


def tombstone(remove: RawAction, paths: TablePaths, rows: int | None, *, data_change: bool = True) -> Tombstone:
    """Return a remove action as a value; `rows` are those of its statistics."""
    return Tombstone(
        path=paths.decoded(remove["path"]),
        vector=read_vector(remove.get("deletionVector"), paths),
        deleted_ms=remove.get("deletionTimestamp") or 0,
        bytes=remove.get("size"),
        rows=rows,
        as_listed=as_listed(remove["path"]),
        data_change=data_change,
        partition=_partition(remove),
        base_row_id=remove.get("baseRowId"),
        row_commit_version=remove.get("defaultRowCommitVersion"),
    )


def read_metadata(action: RawAction) -> Metadata:
    """Return a metaData action as a value; one without a schema has no columns. Raises KeyError, schema_unreadable."""
    return Metadata(
        table_id=action["id"],
        schema_string=canonical(action.get("schemaString") or _NO_COLUMNS),
        configuration=dict(action.get("configuration") or ()),
        partition_columns=tuple(action.get("partitionColumns") or ()),
    )


def read_protocol(action: RawAction) -> Protocol:
    """Return a protocol action as a value. Raises KeyError."""
    reading, writing = action.get("readerFeatures") or [], action.get("writerFeatures") or []
    return Protocol(
        action["minReaderVersion"], action["minWriterVersion"], frozenset([*reading, *writing]), frozenset(reading)
    )


def read_vector(raw: RawAction | None, paths: TablePaths) -> Vector | None:
    """Return the descriptor of a deletion vector as a value. Raises KeyError or ValueError for an invalid one."""
    if raw is None:
        return None
    kind, stored, offset = raw["storageType"], raw["pathOrInlineDv"], raw.get("offset")
    path = None
    if kind == "p":
        path = paths.decoded(stored)
    elif kind == "u":
        folder, encoded = stored[:-_UUID_LENGTH], stored[-_UUID_LENGTH:]
        file = f"deletion_vector_{UUID(bytes=z85_decoded(encoded))}.bin"
        path = f"{folder}/{file}" if folder else file
    elif kind != "i":
        raise ValueError(f"unknown storage type {kind!r} of a deletion vector")
    name = f"{kind}{stored}" if offset is None else f"{kind}{stored}@{offset}"
    return Vector(name, path, raw["sizeInBytes"], raw["cardinality"], offset, stored if kind == "i" else "")


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
    """Decode Z85 (ZeroMQ's RFC 32), which is Python's base 85 with another alphabet. Raises ValueError."""
    try:
        data = b85decode(text.translate(_TO_BASE85))
    except ValueError:
        data = None
    if data is None or len(text) % 5 or not set(text) <= set(_Z85):
        raise ValueError(f"{text!r} is not Z85")
    return data


def _partition(action: RawAction) -> dict[str, str | None] | None:
    """Return the partition values by physical names, an empty one as NULL; None if the action has none."""
    values = action.get("partitionValues")
    return None if values is None else {name: value or None for name, value in dict(values).items()}


def _line(text: str) -> dict[str, RawAction]:
    line: dict[str, RawAction] = json.loads(text)
    if not isinstance(line, dict) or not all(isinstance(action, dict) for action in line.values()):
        raise TypeError(f"not an action: {text[:80]!r}")
    return line


def _commit_info(info: RawAction) -> CommitInfo:
    in_commit = info.get("inCommitTimestamp")
    # Spark writes numbers as strings, delta-rs as numbers.
    metrics = {name: str(value) for name, value in (info.get("operationMetrics") or {}).items()}
    return CommitInfo(
        operation=info.get("operation", ""),
        metrics={name: int(value) for name, value in metrics.items() if value.isdecimal()},
        timestamp_ms=info.get("timestamp") if in_commit is None else in_commit,
        in_commit_ms=in_commit,
        keeps_row_ids=(info.get("tags") or {}).get("delta.rowTracking.preserved") == "true",
    )
