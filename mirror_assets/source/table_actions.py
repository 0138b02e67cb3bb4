"""The actions of a commit, a compacted log file or a JSON checkpoint, which all are lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from mirror_assets.source.actions import (
    Metadata,
    Protocol,
    RawCommitInfo,
    RawMetadata,
    RawProtocol,
    read_metadata,
    read_protocol,
    stored_rows,
    whole_metrics,
)
from mirror_assets.source.paths import TablePaths, as_listed
from mirror_assets.source.values import LiveFile, Tombstone
from mirror_assets.source.vectors import RawVector, read_vector


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


class _Path(TypedDict):
    path: str


class _Line(TypedDict, total=False):
    add: _Add
    remove: _Remove
    cdc: _Path
    sidecar: _Path
    commitInfo: RawCommitInfo
    metaData: RawMetadata
    protocol: RawProtocol


@dataclass(frozen=True)
class Actions:
    """What one file of the log says; partition values are by physical names. `sidecars` hold more of a checkpoint."""

    added: tuple[LiveFile, ...] = ()
    removed: tuple[Tombstone, ...] = ()
    change_files: tuple[str, ...] = ()
    data_change: bool = False
    operation: str = ""
    metrics: Mapping[str, int] = field(default_factory=dict)
    in_commit_ms: int | None = None
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    sidecars: tuple[str, ...] = ()


def parse_actions(data: bytes, paths: TablePaths) -> Actions:
    """The file's actions. Raises ValueError, KeyError, TypeError or SchemaUnreadable when Delta doesn't write such."""
    lines = [_line(text) for text in data.split(b"\n") if text.strip()]
    info = next((line["commitInfo"] for line in lines if "commitInfo" in line), RawCommitInfo())
    metadata = [line["metaData"] for line in lines if "metaData" in line]
    protocol = [line["protocol"] for line in lines if "protocol" in line]
    return Actions(
        added=tuple(_live(line["add"], paths) for line in lines if "add" in line),
        removed=tuple(_tombstone(line["remove"], paths) for line in lines if "remove" in line),
        change_files=tuple(paths.decoded(line["cdc"]["path"]) for line in lines if "cdc" in line),
        data_change=any(_changes_data(line) for line in lines),
        operation=info.get("operation", ""),
        metrics=dict(whole_metrics(info)),
        in_commit_ms=info.get("inCommitTimestamp"),
        metadata=read_metadata(metadata[-1]) if metadata else None,
        protocol=read_protocol(protocol[-1]) if protocol else None,
        sidecars=tuple(line["sidecar"]["path"] for line in lines if "sidecar" in line),
    )


def merged(parts: Iterable[Actions]) -> Actions:
    """A checkpoint's parts as one; only one of them has the metadata and the protocol."""
    all_parts = tuple(parts)
    return Actions(
        added=tuple(file for part in all_parts for file in part.added),
        removed=tuple(file for part in all_parts for file in part.removed),
        metadata=next((part.metadata for part in all_parts if part.metadata), None),
        protocol=next((part.protocol for part in all_parts if part.protocol), None),
        sidecars=tuple(path for part in all_parts for path in part.sidecars),
    )


def partition_values(raw: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """An add action's; an empty text is NULL, too (Delta's protocol, "Partition Value Serialization")."""
    return {name: value or None for name, value in raw.items()}


def _line(text: bytes) -> _Line:
    line: _Line = json.loads(text)
    if not isinstance(line, dict):
        raise TypeError(f"not an action: {text[:80]!r}")
    return line


def _changes_data(line: _Line) -> bool:
    if "add" in line:
        return line["add"]["dataChange"]
    return "remove" in line and line["remove"]["dataChange"]


def _live(add: _Add, paths: TablePaths) -> LiveFile:
    return LiveFile(
        path=paths.decoded(add["path"]),
        bytes=add["size"],
        rows=stored_rows(add.get("stats")),
        modified_ms=add["modificationTime"],
        partition=partition_values(add.get("partitionValues") or {}),
        vector=read_vector(add.get("deletionVector"), paths),
        tags=add.get("tags") or {},
        as_listed=as_listed(add["path"]),
    )


def _tombstone(remove: _Remove, paths: TablePaths) -> Tombstone:
    return Tombstone(
        path=paths.decoded(remove["path"]),
        vector=read_vector(remove.get("deletionVector"), paths),
        deleted_ms=remove.get("deletionTimestamp") or 0,
        bytes=remove.get("size"),
        rows=stored_rows(remove.get("stats")),
        as_listed=as_listed(remove["path"]),
    )
