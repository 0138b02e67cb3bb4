"""Framing as values: sums over files, the effect between two versions, and what happened in between."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mirror_assets.source.actions import LiveFile


@dataclass(frozen=True)
class FileSum:
    """Some files together. `known_rows` are what those with statistics show, `without_rows` is how many have none.

    `hidden` rows are stored, too, but a deletion vector hides them.
    """

    files: int = 0
    known_rows: int = 0
    without_rows: int = 0
    hidden: int = 0
    bytes: int = 0

    @property
    def rows(self) -> int | None:
        """Rows that the files show, or None when the statistics of one are missing."""
        return None if self.without_rows else self.known_rows

    def __add__(self, other: FileSum) -> FileSum:
        return FileSum(
            self.files + other.files,
            self.known_rows + other.known_rows,
            self.without_rows + other.without_rows,
            self.hidden + other.hidden,
            self.bytes + other.bytes,
        )

    def __sub__(self, other: FileSum) -> FileSum:
        return FileSum(
            self.files - other.files,
            self.known_rows - other.known_rows,
            self.without_rows - other.without_rows,
            self.hidden - other.hidden,
            self.bytes - other.bytes,
        )


def sum_of(file: LiveFile) -> FileSum:
    """One file."""
    hidden = 0 if file.vector is None else file.vector.rows
    if file.rows is None:
        return FileSum(1, without_rows=1, hidden=hidden, bytes=file.bytes)
    return FileSum(1, file.rows - hidden, hidden=hidden, bytes=file.bytes)


@dataclass(frozen=True)
class FramingEffect:
    """What becomes of a model that was framed at version `first` when it is framed at `last`.

    `kept` files are the same in both, deletion vector included; `changed` ones have another vector: what Direct Lake
    does with what it holds of them is not documented (reference `direct-lake` §4); `reloaded` ones are new. All three
    are counted as of `last`, `dropped` ones as of `first`. `vector_bytes` are the deletion vectors to read.
    """

    first: int
    last: int
    kept: FileSum = FileSum()
    changed: FileSum = FileSum()
    reloaded: FileSum = FileSum()
    dropped: FileSum = FileSum()
    vector_bytes: int = 0

    @property
    def total(self) -> FileSum:
        """All files of `last`."""
        return self.kept + self.changed + self.reloaded

    @property
    def bytes_to_load(self) -> int:
        """Bytes of new files and vectors; a model that doesn't use every column loads less."""
        return self.reloaded.bytes + self.vector_bytes

    @property
    def kept_share(self) -> float | None:
        """Kept rows of all rows of `last`; None when these are not known, or when there are none."""
        return _share(self.kept, self.total)

    @property
    def changed_share(self) -> float | None:
        """Rows of files with another deletion vector, likewise."""
        return _share(self.changed, self.total)

    @property
    def reloaded_share(self) -> float | None:
        """Rows of new files, likewise."""
        return _share(self.reloaded, self.total)


class Maintenance(str, Enum):
    """Operations that change files and leave rows as they are, or bring an older version back."""

    OPTIMIZE = "OPTIMIZE"
    REORG = "REORG"
    VACUUM = "VACUUM"
    RESTORE = "RESTORE"


@dataclass(frozen=True)
class Mark:
    """A maintenance operation's commit."""

    version: int
    timestamp_ms: int
    operation: Maintenance


@dataclass(frozen=True)
class FramingPoint:
    """One framing in a row of them: when `effect.last` was committed, and the maintenance since `effect.first`."""

    timestamp_ms: int
    effect: FramingEffect
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class FileLifetime:
    """One file's stay in the table: from a version on, up to the one that removed it.

    `added` is None for a file that was there before the history begins, `removed` for one that is still there; times
    likewise. `changes` are the versions that gave it another deletion vector. A file that RESTORE brings back has a
    second lifetime.
    """

    path: str
    bytes: int
    rows: int | None
    added: int | None
    added_ms: int | None
    removed: int | None = None
    removed_ms: int | None = None
    changes: tuple[int, ...] = ()


def _share(part: FileSum, whole: FileSum) -> float | None:
    if part.rows is None or not whole.rows:
        return None
    return part.rows / whole.rows
