"""One commit file of the Delta log as values (Delta's protocol, "Actions")."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from mirror_assets.source.schema import canonical

# Both writers put it first, so the column statistics behind it need no parsing.
_RECORDS_FIRST = re.compile(r'\s*\{\s*"numRecords"\s*:\s*(\d+)')
_IN_COMMIT_SINCE = "delta.inCommitTimestampEnablementVersion"
# Delta Live Tables make a table before they know its columns, and leave the schema out; so does Spark, of an empty one.
_NO_COLUMNS = '{"type":"struct","fields":[]}'


class _Vector(TypedDict, total=False):
    cardinality: int


class _File(TypedDict, total=False):
    path: str
    size: int | None
    dataChange: bool
    stats: str | None
    deletionVector: _Vector | None


class RawCommitInfo(TypedDict, total=False):
    """A commitInfo action as JSON has it."""

    timestamp: int
    inCommitTimestamp: int
    operation: str
    operationMetrics: dict[str, object] | None
    tags: dict[str, str] | None


class RawMetadata(TypedDict, total=False):
    """A metaData action as JSON has it."""

    id: str
    schemaString: str | None
    configuration: dict[str, str] | None
    partitionColumns: list[str] | None


class RawProtocol(TypedDict, total=False):
    """A protocol action as JSON has it."""

    minReaderVersion: int
    minWriterVersion: int
    readerFeatures: list[str] | None
    writerFeatures: list[str] | None


class _Line(TypedDict, total=False):
    add: _File
    remove: _File
    cdc: _File
    commitInfo: RawCommitInfo
    metaData: RawMetadata
    protocol: RawProtocol


@dataclass(frozen=True)
class FileAction:
    """A file that a commit adds or removes, or that holds its changes; `deleted` rows are hidden by a vector."""

    path: str
    bytes: int
    records: int | None
    deleted: int


@dataclass(frozen=True)
class Metadata:
    """A table's metadata as a metaData action, or a snapshot, has it; `schema_string` in canonical order."""

    table_id: str
    schema_string: str
    configuration: Mapping[str, str] = field(default_factory=dict)
    partition_columns: tuple[str, ...] = ()

    @property
    def feed_enabled(self) -> bool:
        """Whether the table records its change data feed."""
        return self._is_on("delta.enableChangeDataFeed")

    @property
    def row_tracking(self) -> bool:
        """Whether rows keep their ids."""
        return self._is_on("delta.enableRowTracking")

    @property
    def in_commit_since(self) -> int | None:
        """The version from which on commits hold their own time, which counts more than their files'; None: none does.

        Whatever commits before that hold counts no more.
        """
        is_on = self._is_on("delta.enableInCommitTimestamps")
        return int(self.configuration.get(_IN_COMMIT_SINCE, 0)) if is_on else None

    def _is_on(self, name: str) -> bool:
        return self.configuration.get(name, "false").lower() == "true"


@dataclass(frozen=True)
class Protocol:
    """What a reader and a writer of the table must know; `reader_features` are those that a reader must, too."""

    reader: int
    writer: int
    features: frozenset[str] = frozenset()
    reader_features: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CommitFile:
    """What one commit file says. Files whose action says `dataChange: false` are left out: they yield no changes.

    But `renumbered` are those of them whose writer doesn't say that it has kept the ids of their rows. `moves_files`:
    it adds or removes any at all.
    """

    version: int
    timestamp_ms: int | None = None
    operation: str = ""
    metrics: Mapping[str, int] = field(default_factory=dict)
    added: tuple[FileAction, ...] = ()
    removed: tuple[FileAction, ...] = ()
    change_files: tuple[FileAction, ...] = ()
    renumbered: tuple[FileAction, ...] = ()
    moves_files: bool = False
    metadata: Metadata | None = None
    protocol: Protocol | None = None


def parse_commit(version: int, data: bytes) -> CommitFile:
    """What the commit file holds. Raises ValueError, KeyError or TypeError when it is not what Delta writes."""
    lines = [_line(text) for text in data.split(b"\n") if text.strip()]
    info = next((line["commitInfo"] for line in lines if "commitInfo" in line), RawCommitInfo())
    metadata = [read_metadata(line["metaData"]) for line in lines if "metaData" in line]
    protocol = [read_protocol(line["protocol"]) for line in lines if "protocol" in line]
    added = [line["add"] for line in lines if "add" in line]
    return CommitFile(
        version=version,
        timestamp_ms=_timestamp(info),
        operation=info.get("operation", ""),
        metrics=dict(whole_metrics(info)),
        added=tuple(_file(add) for add in added if add["dataChange"]),
        removed=tuple(_file(line["remove"]) for line in lines if "remove" in line and line["remove"]["dataChange"]),
        change_files=tuple(_file(line["cdc"]) for line in lines if "cdc" in line),
        renumbered=() if _keeps_ids(info) else tuple(_file(add) for add in added if not add["dataChange"]),
        moves_files=any("add" in line or "remove" in line for line in lines),
        metadata=metadata[-1] if metadata else None,
        protocol=protocol[-1] if protocol else None,
    )


def commit_time(data: bytes) -> int | None:
    """The commit's time in ms, without parsing its other actions; None when it has no commitInfo with one."""
    return _timestamp(_info(data))


def in_commit_time(data: bytes) -> int | None:
    """The commit's in-commit timestamp, or None."""
    return _info(data).get("inCommitTimestamp")


def _info(data: bytes) -> RawCommitInfo:
    for text in data.split(b"\n"):
        if b'"commitInfo"' in text and "commitInfo" in (line := _line(text)):
            return line["commitInfo"]
    return RawCommitInfo()


def _line(text: bytes) -> _Line:
    line: _Line = json.loads(text)
    if not isinstance(line, dict):
        raise TypeError(f"not an action: {text[:80]!r}")
    return line


def _timestamp(info: RawCommitInfo) -> int | None:
    return info.get("inCommitTimestamp", info.get("timestamp"))


def _keeps_ids(info: RawCommitInfo) -> bool:
    return (info.get("tags") or {}).get("delta.rowTracking.preserved") == "true"


def whole_metrics(info: RawCommitInfo) -> Iterator[tuple[str, int]]:
    """The whole numbers among the metrics: Spark writes them as strings, delta-rs as numbers."""
    for name, value in (info.get("operationMetrics") or {}).items():
        if isinstance(value, int):
            yield name, value
        elif isinstance(value, str) and value.isdecimal():
            yield name, int(value)


def _file(action: _File) -> FileAction:
    vector = action.get("deletionVector")
    return FileAction(
        path=action["path"],
        bytes=action.get("size") or 0,
        records=stored_rows(action.get("stats")),
        deleted=vector.get("cardinality", 0) if vector else 0,
    )


def stored_rows(stats: str | None) -> int | None:
    """Rows in a file by its statistics, those that a vector hides included; None when they don't say."""
    if not stats:
        return None
    first = _RECORDS_FIRST.match(stats)
    if first:
        return int(first[1])
    records: int | None = json.loads(stats).get("numRecords")
    return records


def read_metadata(action: RawMetadata) -> Metadata:
    """The action as a value; one without a schema has no columns. Raises KeyError, or SchemaUnreadable."""
    return Metadata(
        table_id=action["id"],
        schema_string=canonical(action.get("schemaString") or _NO_COLUMNS),
        configuration=action.get("configuration") or {},
        partition_columns=tuple(action.get("partitionColumns") or ()),
    )


def read_protocol(action: RawProtocol) -> Protocol:
    """The action as a value. Raises KeyError."""
    reading, writing = action.get("readerFeatures") or [], action.get("writerFeatures") or []
    return Protocol(
        action["minReaderVersion"], action["minWriterVersion"], frozenset([*reading, *writing]), frozenset(reading)
    )
