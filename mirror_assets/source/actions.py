"""The actions of a Delta log as values (Delta's protocol, "Actions")."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

_IN_COMMIT_SINCE = "delta.inCommitTimestampEnablementVersion"
# An estimate for files of which only the size is known.
BYTES_PER_ROW = 100


@dataclass(frozen=True)
class Vector:
    """A deletion vector as the log names it; two have the same `id` if and only if they are the same vector.

    `path` is its file, in the table's folder or an absolute URI, and `offset` the place of its bytes in that file. A
    vector that is stored in the log itself has no `path`; its bitmap is `stored`, in Z85, which is empty for others.
    `rows` is the number of rows that it hides.
    """

    id: str
    path: str | None
    bytes: int
    rows: int
    offset: int | None = None
    stored: str = ""


class _Named:
    """A file of an action; see LiveFile for the fields."""

    __slots__ = ()
    path: str
    spelling: str

    @property
    def key(self) -> str:
        """The text by which the actions of the file name it."""
        return self.spelling or self.path


class _DataFile(_Named):
    """A data file, which may have a deletion vector."""

    __slots__ = ()
    vector: Vector | None

    @property
    def identity(self) -> tuple[str, str]:
        """The file and its vector: of the actions that name both, the last one counts."""
        return self.key, self.vector.id if self.vector else ""

    @property
    def hidden_rows(self) -> int:
        """The number of stored rows that the deletion vector hides."""
        return self.vector.rows if self.vector else 0


@dataclass(frozen=True, slots=True)
class LiveFile(_DataFile):
    """An add action. `path` is decoded: in the table's folder, or an absolute URI (shallow clones).

    `spelling` is the path as in the log if that is another text. As for Delta's readers, two spellings are two files.
    `rows` are the stored rows according to the statistics, hidden ones included; None without statistics. `partition`
    is by the columns' logical names in a snapshot, by their physical ones in a single commit. `as_listed`: whether
    Spark's VACUUM knows the file by the path that the log has. `data_change` belongs to the commit that added the file,
    so equality ignores it. With row tracking, `base_row_id` is the id of the file's first row, and `row_commit_version`
    the version that its rows were last changed in, for rows that have no stored ones.
    """

    path: str
    bytes: int
    rows: int | None
    modified_ms: int
    partition: Mapping[str, str | None]
    vector: Vector | None
    tags: Mapping[str, str]
    as_listed: bool = True
    data_change: bool = field(default=True, compare=False)
    base_row_id: int | None = None
    row_commit_version: int | None = None
    spelling: str = field(default="", compare=False)

    @property
    def likely_rows(self) -> int:
        """The best guess at the number of stored rows."""
        return self.bytes // BYTES_PER_ROW if self.rows is None else self.rows


@dataclass(frozen=True, slots=True)
class Tombstone(_DataFile):
    """A remove action: a file that is no longer live, or no longer with this vector; fields as in LiveFile.

    `bytes`, `rows` and `partition` are None if the writer left them out; `partition` is by physical names.
    """

    path: str
    vector: Vector | None
    deleted_ms: int
    bytes: int | None
    rows: int | None
    as_listed: bool = True
    data_change: bool = field(default=True, compare=False)
    partition: Mapping[str, str | None] | None = None
    base_row_id: int | None = None
    row_commit_version: int | None = None
    spelling: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ChangeFile(_Named):
    """A cdc action: a file of the change data feed, without statistics; fields as in LiveFile."""

    path: str
    bytes: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    spelling: str = field(default="", compare=False)

    @property
    def hidden_rows(self) -> int:
        """Zero: a change file has no deletion vector."""
        return 0


LoggedFile = LiveFile | Tombstone | ChangeFile


_File = TypeVar("_File", LiveFile, Tombstone, LiveFile | Tombstone)


def distinct(files: Iterable[_File]) -> tuple[_File, ...]:
    """Return the files without those that are named again with the same vector; the last action counts."""
    return tuple({file.identity: file for file in files}.values())


def is_other_file(old: LiveFile | Tombstone, new: LiveFile) -> bool:
    """Whether the actions of one path describe different files: Delta never overwrites a file.

    Without a change of data, another number of rows is a correction of the statistics.
    """
    if old.bytes and new.bytes and old.bytes != new.bytes:
        return True
    same_vector = (old.vector and old.vector.id) == (new.vector and new.vector.id)
    return same_vector and new.data_change and None not in (old.rows, new.rows) and old.rows != new.rows


def live_rows(files: Iterable[LiveFile | Tombstone]) -> int | None:
    """Return the rows of the files without those that vectors hide, a file that is named twice once.

    None if the statistics of a file are missing.
    """
    rows = [None if file.rows is None else file.rows - file.hidden_rows for file in distinct(files)]
    known = [count for count in rows if count is not None]
    return sum(known) if len(known) == len(rows) else None


@dataclass(frozen=True)
class Metadata:
    """A table's metadata, of a metaData action or a snapshot; `schema_string` has its keys in canonical order."""

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
        """Whether row tracking is on, so that rows retain their ids."""
        return self._is_on("delta.enableRowTracking")

    @property
    def in_commit_since(self) -> int | None:
        """The first version whose in-commit timestamp counts, or None if file times count for all versions.

        In-commit timestamps of older commits do not count.
        """
        is_on = self._is_on("delta.enableInCommitTimestamps")
        return int(self.configuration.get(_IN_COMMIT_SINCE, 0)) if is_on else None

    @property
    def max_column_id(self) -> int:
        """The highest column id that column mapping has given; 0 without column mapping."""
        text = self.configuration.get("delta.columnMapping.maxColumnId", "")
        return int(text) if text.isdecimal() else 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column["name"] for column in json.loads(self.schema_string)["fields"])

    def _is_on(self, name: str) -> bool:
        return self.configuration.get(name, "false").lower() == "true"


@dataclass(frozen=True)
class Protocol:
    """The protocol versions and table features that writers must support; readers only `reader_features`."""

    reader: int
    writer: int
    features: frozenset[str] = frozenset()
    reader_features: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CommitInfo:
    """A commitInfo action: free text, of which only `in_commit_ms` and `keeps_row_ids` are part of Delta's protocol.

    `operation` is Delta's name of the operation, for messages; empty if the writer gave none. `timestamp_ms` is the
    in-commit timestamp, else the writer's clock; None without either. `keeps_row_ids`: the writer declares that
    rewritten rows retain their row ids.
    """

    operation: str = ""
    timestamp_ms: int | None = None
    in_commit_ms: int | None = None
    keeps_row_ids: bool = False


@dataclass(frozen=True)
class Actions:
    """The actions in one file of the log: a commit, compacted commits, or a part of a checkpoint.

    Partition values are by physical names. `sidecars` are the paths of the files with the rest of a checkpoint.
    """

    added: tuple[LiveFile, ...] = ()
    removed: tuple[Tombstone, ...] = ()
    change_files: tuple[ChangeFile, ...] = ()
    info: CommitInfo = field(default_factory=CommitInfo)
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    sidecars: tuple[str, ...] = ()

    @cached_property
    def data_added(self) -> tuple[LiveFile, ...]:
        """The added files that change data, unlike those of OPTIMIZE, which only rewrites rows; each once."""
        return distinct(file for file in self.added if file.data_change)

    @cached_property
    def data_removed(self) -> tuple[Tombstone, ...]:
        """The removed files that change data, each once."""
        return distinct(file for file in self.removed if file.data_change)

    @cached_property
    def revectored(self) -> tuple[tuple[Tombstone, LiveFile], ...]:
        """The files that a commit removes and adds with another deletion vector, as (removed, added)."""
        removed = {file.key: file for file in self.data_removed}
        return tuple((removed[file.key], file) for file in self.data_added if file.key in removed)

    @property
    def whole_files(self) -> tuple[LiveFile | Tombstone, ...]:
        """The files whose live rows are all in the change data feed: those that change data, except `revectored`."""
        both = {added.key for _, added in self.revectored}
        files: tuple[LiveFile | Tombstone, ...] = (*self.data_added, *self.data_removed)
        return tuple(file for file in files if file.key not in both) if both else files

    @property
    def overwritten(self) -> str | None:
        """The path of a file that the commit removes, and under whose name it adds another one; None without one."""
        removed = {file.path: file for file in self.removed}
        found = (new.path for new in self.added if new.path in removed and is_other_file(removed[new.path], new))
        return next(found, None)

    @property
    def rewrite_balance(self) -> int | None:
        """The rows that files without a data change add, less those that they remove; None without statistics.

        Other than 0, such a file does change data. A file that is added again while it is live counts as added, because
        the commit doesn't show that it was live.
        """
        added = live_rows(file for file in self.added if not file.data_change)
        removed = live_rows(file for file in self.removed if not file.data_change)
        return None if added is None or removed is None else added - removed

    @property
    def renumbered(self) -> tuple[LiveFile, ...]:
        """Files whose rows were only rewritten, by a writer that does not declare that they retain their row ids."""
        return () if self.info.keeps_row_ids else tuple(file for file in self.added if not file.data_change)
