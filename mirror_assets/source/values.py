"""What a table's log says of files, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mirror_assets.source.actions import Metadata, Protocol
from mirror_assets.source.files import StoredFile

__all__ = ["LiveFile", "LoggedCommit", "Snapshot", "StoredFile", "Tombstone", "Vector"]


@dataclass(frozen=True)
class Vector:
    """A deletion vector as the log names it; `id` is equal if and only if it is the same vector.

    `path` is that of the file which holds it, in the table's folder or an absolute URI; None for one that the log
    itself holds. `rows` is the number of rows that it hides.
    """

    id: str
    path: str | None
    bytes: int
    rows: int


@dataclass(frozen=True)
class LiveFile:
    """An add action. `path` is decoded: in the table's folder, or an absolute URI (shallow clones).

    `rows` are those stored in it by its statistics, hidden ones included; None when they don't say. `partition` is by
    the columns' logical names. `as_listed`: whether Spark's VACUUM knows the file by the path that the log has.
    """

    path: str
    bytes: int
    rows: int | None
    modified_ms: int
    partition: Mapping[str, str | None]
    vector: Vector | None
    tags: Mapping[str, str]
    as_listed: bool = True


@dataclass(frozen=True)
class Tombstone:
    """A remove action: a file that is live no more, or no more with this vector; `path` and `as_listed` as in LiveFile.

    `bytes` and `rows` are None where its writer left them out.
    """

    path: str
    vector: Vector | None
    deleted_ms: int
    bytes: int | None
    rows: int | None
    as_listed: bool = True


@dataclass(frozen=True)
class Snapshot:
    """A table at one version, files and tombstones in order of their paths.

    `tombstones` are those that the checkpoint it was read from still had, and those made since.
    """

    uri: str
    version: int
    timestamp_ms: int
    metadata: Metadata
    protocol: Protocol
    files: tuple[LiveFile, ...]
    tombstones: tuple[Tombstone, ...]


@dataclass(frozen=True)
class LoggedCommit:
    """A commit with all its files, whatever their `dataChange` says; `data_change` is whether any says true.

    `change_files` are paths of the change data feed; `partition` of the files is by the newest names of the columns.
    """

    version: int
    timestamp_ms: int
    operation: str
    metrics: Mapping[str, int]
    added: tuple[LiveFile, ...]
    removed: tuple[Tombstone, ...]
    change_files: tuple[str, ...]
    data_change: bool
    metadata: Metadata | None
