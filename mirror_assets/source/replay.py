"""Replays actions to reconstruct versions of a table (Delta's protocol, "Action Reconciliation").

A version is a Snapshot, or LivePaths: a few bytes for each file, to detect a file that is added or removed twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mirror_assets.lakes.errors import CATALOG_MANAGED, SOURCE_UNREADABLE
from mirror_assets.source.actions import Actions, LiveFile, Metadata, Protocol, Tombstone
from mirror_assets.source.errors import SOURCE_UNSUPPORTED
from mirror_assets.source.schema import parse_schema
from mirror_assets.source.table_features import feature_unsupported, is_readable, require_readable_columns

_READER_VERSION = 3
_CATALOG = frozenset({"catalogManaged", "catalogOwned"})


def require_readable(uri: str, protocol: Protocol, *, is_managed: bool = False) -> None:
    """Raise CATALOG_MANAGED, or SOURCE_UNSUPPORTED for a reader version or feature that is not supported.

    `is_managed`: the table's catalog was asked for its commits.
    """
    features = sorted(protocol.reader_features)
    if not is_managed and any(feature.removesuffix("-preview") in _CATALOG for feature in features):
        raise CATALOG_MANAGED(uri=uri)
    if protocol.reader > _READER_VERSION:
        raise SOURCE_UNSUPPORTED(uri=uri, why=f"reader version {protocol.reader} of Delta's protocol")
    for feature in features:
        if not is_readable(feature):
            raise feature_unsupported(uri, feature)


_Key = tuple[str, str]
_Action = TypeVar("_Action", LiveFile, Tombstone)


@dataclass(frozen=True)
class Snapshot:
    """A table at one version, files and tombstones in order of their paths.

    `tombstones` are those in the checkpoint that it was read from, and later ones.
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
    """A commit with all its actions, also those that change no data.

    Partition values of added files are by the newest names of the columns. `timestamp_ms` is Delta's commit time, as
    `DeltaLog.time_ms` returns it.
    """

    version: int
    timestamp_ms: int
    actions: Actions


class Replay:
    """The state of a table, to which the actions of one version after another are applied."""

    def __init__(self, uri: str, *, is_managed: bool = False) -> None:
        """Start before the first version; `is_managed` as in `require_readable`."""
        self._uri, self._is_managed = uri, is_managed
        self._files: dict[_Key, LiveFile] = {}
        self._tombstones: dict[_Key, Tombstone] = {}
        self._metadata: Metadata | None = None
        self._protocol: Protocol | None = None

    def apply(self, actions: Actions) -> None:
        """Apply a commit, compacted commits, or a checkpoint."""
        for tombstone in actions.removed:
            key = tombstone.identity
            self._files.pop(key, None)
            self._tombstones[key] = tombstone
        for file in actions.added:
            key = file.identity
            self._tombstones.pop(key, None)
            self._files[key] = file
        self._metadata = actions.metadata or self._metadata
        self._protocol = actions.protocol or self._protocol

    @property
    def metadata(self) -> Metadata:
        """The newest metadata. Raises SourceUnreadable before the first metaData action."""
        if self._metadata is None:
            raise SOURCE_UNREADABLE(uri=self._uri, why="its log has no metaData action")
        return self._metadata

    def snapshot(self, version: int, timestamp_ms: int) -> Snapshot:
        """Return the state as a value.

        Raises SourceUnreadable without metadata or protocol, CATALOG_MANAGED and SOURCE_UNSUPPORTED.
        """
        if self._protocol is None:
            raise SOURCE_UNREADABLE(uri=self._uri, why="its log has no protocol action")
        require_readable(self._uri, self._protocol, is_managed=self._is_managed)
        require_readable_columns(self._uri, self.metadata)
        return Snapshot(
            uri=self._uri,
            version=version,
            timestamp_ms=timestamp_ms,
            metadata=self.metadata,
            protocol=self._protocol,
            files=tuple(with_logical_names(_sorted(self._files), self.metadata)),
            tombstones=tuple(_sorted(self._tombstones)),
        )


def require_reconciled(actions: Actions) -> None:
    """Raise ValueError for compacted commits that both add and remove a file, because their order is lost."""
    both = {file.identity for file in actions.added} & {file.identity for file in actions.removed}
    if both:
        raise ValueError(f"{min(both)[0]} is both added and removed")


def with_logical_names(files: Iterable[LiveFile], metadata: Metadata) -> Iterator[LiveFile]:
    """Yield the files with partition values by the columns' logical names, not the physical ones."""
    return _renamed(files, {physical: logical for logical, physical in physical_partitions(metadata).items()})


def with_physical_names(files: Iterable[LiveFile], metadata: Metadata) -> Iterator[LiveFile]:
    """Yield the files of a snapshot with partition values by the columns' physical names, as in a commit."""
    return _renamed(files, physical_partitions(metadata))


def physical_partitions(metadata: Metadata) -> dict[str, str]:
    """Return the physical names of the partition columns by their logical ones; nothing without column mapping."""
    mode = metadata.configuration.get("delta.columnMapping.mode", "none").lower()
    if mode == "none" or not metadata.partition_columns:
        return {}
    fields = parse_schema(metadata.schema_string).fields
    columns = (field for field in fields if field.name in metadata.partition_columns)
    return {field.name: field.physical_name or field.name for field in columns}


def _renamed(files: Iterable[LiveFile], names: Mapping[str, str]) -> Iterator[LiveFile]:
    for file in files:
        if names and file.partition:
            yield replace(file, partition={names.get(name, name): value for name, value in file.partition.items()})
        else:
            yield file


def _sorted(actions: dict[_Key, _Action]) -> list[_Action]:
    """Sort by paths as in the log, so that replays from different checkpoints give the same."""
    return [actions[key] for key in sorted(actions)]


def _hashes(paths: Iterable[str]) -> npt.NDArray[np.int64]:
    return np.unique(np.fromiter(map(hash, paths), np.int64))


@dataclass(frozen=True, eq=False)
class LivePaths:
    """The paths of a version's live files, as the log spells them, as sorted hashes; its metadata and protocol."""

    version: int
    metadata: Metadata
    protocol: Protocol
    hashes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, version: int, metadata: Metadata, protocol: Protocol, paths: Iterable[str]) -> LivePaths:
        """Return those of a version with these live files."""
        return cls(version, metadata, protocol, _hashes(paths))

    def __contains__(self, path: str) -> bool:
        """Whether the file is live; of 10^9 paths that aren't, about one counts as live."""
        wanted = hash(path)
        at = int(np.searchsorted(self.hashes, wanted))
        return at < len(self.hashes) and int(self.hashes[at]) == wanted

    def after(
        self, version: int, metadata: Metadata, protocol: Protocol, live: Iterable[str], gone: Iterable[str]
    ) -> LivePaths:
        """Return those of a later version, at which these files are live, and those are not any more."""
        hashes = np.setdiff1d(self.hashes, _hashes(gone), assume_unique=True)
        hashes = np.union1d(hashes, _hashes(live))
        return replace(self, version=version, metadata=metadata, protocol=protocol, hashes=hashes)
