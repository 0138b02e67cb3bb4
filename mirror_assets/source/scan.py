"""What Spark reads of a source: an exact list of files and rows, with the schema that the rows get.

Only `source/scan_builder.py` makes scans, from the log, and `encode/scan_reader.py` reads them as plain Parquet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from pyroaring import BitMap64

from mirror_assets.source.actions import Metadata


class RowKind(str, Enum):
    """What the rows of a file are to the commit, by their `_change_type` in a change data feed."""

    INSERT = "insert"
    DELETE = "delete"
    AS_ROWS_SAY = "as rows say"
    """A change file: each row has its own `_change_type`."""


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Rows of a file by their index: the only ones that are read (`are_read`), or the only ones that are not."""

    rows: BitMap64
    are_read: bool


@dataclass(frozen=True, eq=False, slots=True)
class ScannedFile:
    """A data file or change file to read for one commit; `chosen` None: all its rows.

    `path` is in the table's folder, or an absolute URI; it isn't encoded. `partition` has the partition columns' values
    as the log has them, by logical names. `version` is the commit that changes the rows; of a snapshot, its version.
    Rows without a stored row id have `first_row_id` plus their index, and changed at `row_version`.
    """

    path: str
    bytes: int
    partition: Mapping[str, str | None]
    version: int
    kind: RowKind
    chosen: ChosenRows | None = None
    first_row_id: int | None = None
    row_version: int | None = None


@dataclass(frozen=True, eq=False)
class Scan:
    """Files to read of the table at `uri`, at most once for each file and commit.

    The rows get the schema of `metadata`. Those of a `feed` also have Delta's columns of the change data feed, with the
    times of `times_ms` (in ms since 1970, by version), NULL for others.
    """

    uri: str
    metadata: Metadata
    files: tuple[ScannedFile, ...]
    feed: bool = False
    times_ms: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def whole_bytes(self) -> int:
        """Size of the files that are read whole, except for rows that deletion vectors hide."""
        return sum(file.bytes for file in self.files if file.chosen is None or not file.chosen.are_read)

    def of_commits(self, first: int, last: int) -> Scan:
        """Return the part for the commits `first` to `last`."""
        return replace(self, files=tuple(file for file in self.files if first <= file.version <= last))

    @property
    def replacing(self) -> frozenset[int]:
        """The commits without change files that both add and remove rows: most of their rows may be unchanged."""
        added, removed = (
            {file.version for file in self.files if file.kind is kind} for kind in (RowKind.INSERT, RowKind.DELETE)
        )
        return frozenset(added & removed)

    @property
    def reads_change_files(self) -> bool:
        """Whether some rows come from files of the change data feed."""
        return RowKind.AS_ROWS_SAY in self.kinds

    @cached_property
    def kinds(self) -> frozenset[RowKind]:
        """The kinds of its files."""
        return frozenset(file.kind for file in self.files)


@dataclass(frozen=True)
class DifferingScans:
    """The rows that only the version `before` has, and those that only `last` has; none is in both files unchanged."""

    before: Scan
    last: Scan
    before_version: int
    last_version: int
